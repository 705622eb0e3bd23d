// Many seeds, several at a time.
#pragma once

#include "sim/apart.h"
#include "sim/draw.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace lockstep::tools::sim {

struct Plan {
    std::uint64_t from = 0;
    std::uint64_t to = 0;  // the last one
    std::size_t replicas = 0;  // as in lockstep::sim::draw
    lockstep::sim::Case (*draw)(std::uint64_t seed, std::size_t replicas) = lockstep::sim::draw_either;
    std::size_t jobs = 1;
    std::optional<std::chrono::steady_clock::time_point> ends;
    bool quiet = false;    // no progress on standard error
};

struct Found {
    std::uint64_t seed = 0;
    lockstep::sim::RunResult result;
};

struct Totals {
    std::uint64_t seeds = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t elections = 0;
    std::uint64_t undecided = 0;
    std::uint64_t virtual_ns = 0;
    std::uint64_t to_leader_ns = 0;
    std::uint64_t to_commit_ns = 0;
};

// Runs the seeds in order until one fails, all are done, or the time is over. Of several that fail, the lowest seed of
// those that were under way counts.
std::optional<Found> run_seeds(const Plan& plan, Totals& totals);

}  // namespace lockstep::tools::sim
