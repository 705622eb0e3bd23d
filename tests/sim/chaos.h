// A random run: faults drawn from a seed, a workload, then healing, after which the cluster must make progress.
#pragma once

#include "tests/sim/cluster.h"

#include <cstdint>
#include <string>

namespace lockstep::sim {

struct ChaosResult {
    std::uint64_t hash = 0;          // of the whole history
    std::string violation;           // empty: none
    std::uint64_t acknowledged = 0;
    std::uint64_t unknown = 0;
    std::uint64_t reads = 0;
    std::uint64_t elections = 0;
    Index committed;
};

// Runs `seed`: about two virtual seconds of faults, then up to five of healing.
ChaosResult run_chaos(std::uint64_t seed);

}  // namespace lockstep::sim
