// The marker that keeps a replica from forming twice (S7): a small text file in its data folder.
#pragma once

#include "consensus/replica/driver.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <optional>
#include <string>

namespace lockstep::replica {

// What a replica has kept of the forming that it took part in.
struct KeptFormation {
    std::uint64_t genesis = 0;
    core::Config voters;
    bool formed = false;  // it finished, as far as this replica knows
};

class FormationFile final : public FormationStore {
 public:
    // Makes the data folder if it is missing. The error says so if the folder cannot be used, or if it shows that this
    // replica has formed before and did not keep its log on disk: then its memory is lost, and it must not vote as if
    // it were not (S12).
    static Result<FormationFile> open(const Options& options);

    // Of durable mode: what an earlier life of it has kept.
    const std::optional<KeptFormation>& kept() const { return kept_; }

    // Complete or absent: written aside, fsynced, renamed, the folder fsynced.
    Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) override;

 private:
    explicit FormationFile(const Options& options)
        : folder_(options.data_folder),
          cluster_id_(options.cluster_id),
          id_(options.id),
          durability_(options.durability) {}

    std::string folder_;
    std::uint64_t cluster_id_;
    ReplicaId id_;
    Durability durability_;
    std::optional<KeptFormation> kept_;
};

}  // namespace lockstep::replica
