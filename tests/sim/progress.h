// How many seeds a test runs, and whether a cluster gets on.
#pragma once

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
