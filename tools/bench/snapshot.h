// What a snapshot costs those who commit meanwhile.
#pragma once

#include <lockstep/options.h>

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::bench {

struct SnapshotPlan {
    std::size_t mib = 1024;        // of the leader's state
    std::size_t bytes = 64;        // of each command
    std::vector<std::size_t> depths{1, 64};
    Durability durability = Durability::durable;
    Polling polling = Polling::blocking;
    unsigned rounds = 3;
    double seconds = 3;            // of commits, before each snapshot
    std::string folder{};          // for the replicas' data; empty: where the system has temporary files
    std::string json{};            // a file, or empty
};

// Three replicas; the leader's state is the counter's, filled before it starts, and every command changes a key of it.
// By turns: commits, and commits while the leader takes a snapshot. Prints; returns an exit status. Main thread only.
int run_snapshot(const SnapshotPlan& plan);

}  // namespace lockstep::bench
