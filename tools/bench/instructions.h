// Instructions per committed entry on the leader's protocol thread: a number that other work on the machine does not
// change.
#pragma once

#include "tools/bench/cluster.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::bench {

struct InstructionsPlan {
    std::size_t bytes = 64;
    std::size_t depth = 64;
    std::uint64_t entries = 100'000;
    unsigned functions = 25;
    std::string keep;  // a folder, or empty
};

// Runs a leader under valgrind --tool=callgrind twice, with N and with 2 N entries: the difference, over N, leaves out
// what starting and electing cost. Prints that and where it goes. Returns an exit status. Main thread only.
int run_instructions(const InstructionsPlan& plan);

// The body of the leader's process. Returns an exit status.
int run_counted_leader(const ClusterSpec& spec, std::size_t bytes, std::size_t depth, std::uint64_t entries);

}  // namespace lockstep::bench
