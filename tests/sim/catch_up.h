// What tests of catching up share.
#pragma once

#include "sim/cluster.h"
#include "tests/sim/progress.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdint>

namespace lockstep::sim {

inline std::uint64_t seeds() { return seeds(150); }

class CatchUp : public testing::Test {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }

    static Cluster::Options options(Durability durability, std::uint64_t seed, replica::SnapshotTriggers after = {}) {
        Cluster::Options options;
        options.seed = seed;
        options.durability = durability;
        options.snapshot_after = after;
        return options;
    }
    static void form(Cluster& cluster) {
        cluster.start_all();
        ASSERT_TRUE(cluster.run_until(5000 * kMs, [&] { return cluster.leader().has_value(); }));
    }
    // So many rings' length of commands go through the leader.
    static void fill(Cluster& cluster, std::size_t rings) {
        constexpr std::size_t kBytes = 200;
        const Position end{cluster.core(*cluster.leader()).commit().position.value +
                           rings * cluster.core(*cluster.leader()).ring().bytes()};
        ASSERT_TRUE(cluster.run_until(60'000 * kMs, [&] {
            const auto leader = cluster.leader();
            if (leader && cluster.driver(*leader).waiting_proposals() < 8) cluster.propose(*leader, kBytes);
            return leader && cluster.core(*leader).commit().position >= end;
        })) << cluster.describe();
    }
    static ReplicaId other_than(ReplicaId id) { return ReplicaId{static_cast<std::uint8_t>(id.value % 3 + 1)}; }
    static void cut_off(Cluster& cluster, ReplicaId id) {
        for (const ReplicaId other : cluster.ids()) {
            if (other == id) continue;
            cluster.network().cut(id, other);
            cluster.network().cut(other, id);
        }
    }
    static bool all_equal(Cluster& cluster, std::uint64_t within_ns = 10'000 * kMs) {
        return sim::all_equal(cluster, within_ns);
    }
};

}  // namespace lockstep::sim
