// What the disk gives alone, for the pattern of a durable commit: write some bytes behind the last ones, fdatasync.
// Uses nothing of the library but its errors.
#pragma once

#include "tools/bench/histogram.h"
#include "tools/bench/limit.h"
#include "tools/bench/process.h"

#include <lockstep/result.h>

#include <string>
#include <vector>

namespace lockstep::bench {

struct DiskLimitPlan {
    std::string folder = ".";          // a file is made there, and removed
    std::vector<std::size_t> bytes{64, 1024, 16 * 1024, 256 * 1024};
    double seconds = 2;                // each measurement
    std::string json{};                // the results go there, as one array of objects; empty: nowhere
};

// One write and one fdatasync at a time, in a file whose space was allocated and written before, as a log that uses its
// segments again has it.
class DiskLimit {
 public:
    // A file of 64 MiB in `folder` without a name: it goes with this. Blocks, as all of these. Errors: the disk's.
    static Result<DiskLimit> make(const std::string& folder);
    // `plan.bytes` a time.
    Result<Histogram> measure(const LimitPlan& plan);

 private:
    DiskLimit(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
    Result<void> write(const std::vector<char>& bytes, std::uint64_t at) const;
    Result<void> sync() const;

    Descriptor file_;
    std::string path_;
};

// Measures and prints; returns an exit status.
int run_disk_limit(const DiskLimitPlan& plan);

}  // namespace lockstep::bench
