// The marker that keeps a replica from forming twice (S7): a small text file in its data folder.
#pragma once

#include "consensus/replica/driver.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <string>

namespace lockstep::replica {

class FormationFile final : public FormationStore {
 public:
    // Makes the data folder if it is missing. The error says so if the folder cannot be used, or if it shows that this
    // replica has formed before: then its memory is lost, and it must not vote as if it were not (S12).
    static Result<FormationFile> open(const Options& options);

    // Complete or absent: written aside, fsynced, renamed, the folder fsynced.
    Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) override;

 private:
    FormationFile(std::string folder, std::uint64_t cluster_id, ReplicaId id)
        : folder_(std::move(folder)), cluster_id_(cluster_id), id_(id) {}

    std::string folder_;
    std::uint64_t cluster_id_;
    ReplicaId id_;
};

}  // namespace lockstep::replica
