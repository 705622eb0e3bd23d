// Load in the leader's own process: what a service that proposes from its callbacks would see.
#pragma once

#include "tools/bench/histogram.h"

#include <lockstep/replica.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

struct LoadPlan {
    std::size_t bytes = 64;       // of each command
    std::size_t depth = 1;        // proposals open at a time
    std::uint64_t warm_up_ns = 0;
    std::uint64_t measure_ns = 0;
    std::uint64_t entries = ~std::uint64_t{0};  // ends after so many, if that comes first; then without a warm-up
    bool timed = true;            // false: ends by `entries` alone, and reads no clock
};

struct LoadResult {
    Histogram latency;
    double entries_per_s = 0;
};

// A closed loop of `depth` open proposals. Each callback, on the protocol thread, notes the latency and proposes the
// next one, so that no hop between threads is measured that a service would not have. One clock read and no
// allocation per entry.
class Load {
 public:
    // The replica leads, and outlives this.
    Load(Replica& replica, const LoadPlan& plan);
    // Once. If the time is over it stops the replica, so that no callback comes later. Error: a proposal was not
    // applied; the deadline; an interrupt.
    Result<LoadResult> run(std::uint64_t deadline_ns);

 private:
    enum class Phase { warm_up, measure, drain };
    void propose(std::size_t slot);
    void done(std::size_t slot, const Outcome& outcome);
    void begin(const Outcome& outcome);
    void next_phase(std::uint64_t now);
    void drain(const Outcome& outcome);

    Replica& replica_;
    const LoadPlan plan_;
    const std::vector<std::byte> command_;
    // All of these belong to the protocol thread until `finished_`.
    std::vector<std::uint64_t> proposed_ns_;  // one per open proposal
    Phase phase_ = Phase::warm_up;
    std::uint64_t phase_end_ns_ = 0;
    std::uint64_t measured_from_ns_ = 0;
    std::uint64_t measured_ns_ = 0;
    std::uint64_t taken_ = 0;
    std::size_t open_ = 0;
    std::string failure_;
    Histogram latency_;
    std::atomic<bool> finished_{false};
};

}  // namespace lockstep::bench
