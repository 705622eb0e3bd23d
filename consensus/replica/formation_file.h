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
    core::Config voters;  // that the cluster began with; none where this replica came into it later, and does not know
    bool formed = false;  // it finished, as far as this replica knows
    Incarnation life;     // that took part; none in files of before this was kept
};

class FormationFile final : public FormationStore {
 public:
    // Makes the data folder if it is missing. The error says so if the folder cannot be used, knows of no cluster where
    // `options` say neither form nor join, or of a forming that has not finished. `fresh` is for a replica whose folder
    // knows of no life of it.
    static Result<FormationFile> open(const Options& options, Incarnation fresh);

    // What an earlier life of it has kept. In memory mode that life is lost, and must not vote as if it were not (S12).
    const std::optional<KeptFormation>& kept() const { return kept_; }

    // Complete or absent: written aside, fsynced, renamed, the folder fsynced.
    Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) override;

 private:
    FormationFile(const Options& options, Incarnation life)
        : folder_(options.data_folder),
          cluster_id_(options.cluster_id),
          id_(options.id),
          durability_(options.durability),
          life_(life) {}

    std::string folder_;
    std::uint64_t cluster_id_;
    ReplicaId id_;
    Durability durability_;
    Incarnation life_;
    std::optional<KeptFormation> kept_;
};

}  // namespace lockstep::replica
