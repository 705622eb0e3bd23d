// Reads the files that callgrind writes: what each thread's functions cost by themselves.
#pragma once

#include <lockstep/result.h>

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::bench {

struct Profile {
    std::uint64_t total = 0;
    std::map<std::string, std::uint64_t> self;  // by function's name

    bool names(const std::string& part) const;
};

// The format is described in valgrind's manual, "Callgrind format specification".
Result<Profile> read_profile(const std::string& path);

// All profiles "PREFIX-01", "PREFIX-02", ..., of the threads of one process; the one of the thread that ran a function
// whose name has `part` in it and cost most. Error: there is none.
Result<Profile> profile_of_thread(const std::string& prefix, const std::string& part);

}  // namespace lockstep::bench
