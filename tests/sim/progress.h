// How many seeds a test runs, a network that is not kind, and whether a cluster gets on.
#pragma once

#include "consensus/core/random.h"
#include "sim/cluster.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lockstep::sim {

// LOCKSTEP_SIM_SEEDS, or so many.
inline std::uint64_t seeds(std::uint64_t by_default) {
    const char* asked = std::getenv("LOCKSTEP_SIM_SEEDS");
    return asked == nullptr ? by_default : std::strtoull(asked, nullptr, 10);
}

// Writes land in pieces, lanes break, messages are lost and come twice.
inline void disturb(transport::sim::Faults& faults, core::Random& random) {
    faults.piece_bytes = 64;
    faults.lane_breaks_chance = random.below(20'000);
    faults.completion_lost_chance = random.below(20'000);
    faults.message_lost_chance = random.below(50'000);
    faults.message_repeated_chance = random.below(50'000);
    faults.repeated_late_ns = 50 * kMs;
}

// Whether anybody's proposal is acknowledged within some seconds.
inline bool progresses(Cluster& cluster) {
    const std::size_t before = cluster.history().acknowledged();
    for (int i = 0; i < 100 && cluster.history().acknowledged() == before; ++i) {
        if (const auto leader = cluster.leader()) cluster.propose(*leader);
        cluster.run_for(100 * kMs);
    }
    return cluster.history().acknowledged() > before;
}

// Whether all who are alive have applied what their leader has, within that time.
inline bool all_equal(Cluster& cluster, std::uint64_t within_ns) {
    return cluster.run_until(within_ns, [&] {
        const auto leader = cluster.leader();
        return leader && std::ranges::all_of(cluster.ids(), [&](ReplicaId id) {
            return cluster.core(id).applied() == cluster.core(*leader).applied();
        });
    });
}

}  // namespace lockstep::sim
