// How fast a replica comes back with its log, beside what the disk gives to who only reads.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::bench {

struct RecoveryPlan {
    std::size_t mib = 1024;        // of the log
    std::size_t bytes = 1024;      // of each command
    unsigned rounds = 3;
    std::string folder{};          // for the replica's data; empty: where the system has temporary files
    std::string json{};            // a file, or empty
};

// A durable replica that is alone in its cluster writes a log; then, by turns, with nothing of the log in the system's
// memory: the files are read from end to end, and the replica is opened, which reads, verifies and applies the log. The
// state machine counts and does nothing else. Prints; returns an exit status. Main thread only.
int run_recovery(const RecoveryPlan& plan);

}  // namespace lockstep::bench
