// What was once wrong: each test is the schedule that showed it.
#include "sim/cluster.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

namespace lockstep::sim {
namespace {

constexpr std::uint64_t kRing = 8192;
using Kind = transport::sim::Network::Kind;

class Regression : public testing::Test {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }

    static Cluster::Options options(std::size_t replicas, std::uint64_t seed) {
        Cluster::Options options;
        options.replicas = replicas;
        options.ring_bytes = kRing;
        options.seed = seed;
        return options;
    }
    static bool settle(Cluster& cluster, ReplicaId leader) {
        cluster.run_for(kMs);  // from the queue to the log
        return cluster.run_until(1000 * kMs, [&] {
            return std::ranges::all_of(cluster.ids(), [&](ReplicaId id) {
                return cluster.core(id).applied().index == cluster.core(leader).end().index;
            });
        });
    }
    static std::uint64_t room(const Cluster& cluster, ReplicaId leader) {
        return kRing - cluster.core(leader).end().position.value % kRing;
    }
    // Whether anybody's proposal is acknowledged within a few seconds.
    static bool progresses(Cluster& cluster) {
        const std::size_t before = cluster.history().acknowledged();
        for (int i = 0; i < 50 && cluster.history().acknowledged() == before; ++i) {
            if (const auto leader = cluster.leader()) cluster.propose(*leader);
            cluster.run_for(100 * kMs);
        }
        return cluster.history().acknowledged() > before;
    }
};

// A leader that dies between a pad and the entry behind it leaves a log that ends in a pad. The next one repaired up to
// the pad's header, waited for its body, and never appended its no-op.
TEST_F(Regression, log_that_ends_in_a_pad_can_be_led) {
    int ended_in_pad = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        for (int events = 1; events <= 5; ++events) {
            Cluster cluster(options(3, seed));
            cluster.start_all();
            ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
            const ReplicaId leader = *cluster.leader();
            for (int i = 0; i < 18 && room(cluster, leader) >= 448; ++i) {
                cluster.propose(leader, 400);
                ASSERT_TRUE(settle(cluster, leader));
            }
            if (room(cluster, leader) >= 448) continue;  // two no-ops, and the entries fill the lap: no pad
            const std::uint64_t lap_end = cluster.core(leader).end().position.value + room(cluster, leader);
            cluster.propose(leader, 400);
            ASSERT_TRUE(cluster.run_until(10 * kMs, [&] {
                return cluster.core(leader).end().position.value > lap_end;
            }));
            for (int i = 0; i < events; ++i) cluster.network().run_one(cluster.network().now_ns() + kMs);
            cluster.crash(leader);
            const bool progress = progresses(cluster);
            EXPECT_TRUE(progress) << "seed " << seed << ", " << events << " events\n" << cluster.describe();
            for (const ReplicaId id : cluster.ids())
                ended_in_pad += cluster.core(id).end().position.value > lap_end ? 1 : 0;
        }
    }
    EXPECT_GT(ended_in_pad, 0);
}

// A follower remembered a pad that was never committed past the entries that replaced it; as a leader it then left a
// hole at the end of that lap in the rings that it repaired.
TEST_F(Regression, pad_that_was_replaced_is_forgotten) {
    Cluster cluster(options(5, 1));
    cluster.start_all();
    ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
    cluster.run_for(50 * kMs);
    const ReplicaId first = *cluster.leader();
    std::vector<ReplicaId> others = cluster.ids();
    std::erase(others, first);
    const ReplicaId keeper = others[0];  // takes the pad that is to be replaced
    const ReplicaId lagging = others[2];
    while (room(cluster, first) > 448 + 192) {
        cluster.propose(first, 400);
        ASSERT_TRUE(settle(cluster, first));
    }
    while (room(cluster, first) > 192) {
        cluster.propose(first, 16);
        ASSERT_TRUE(settle(cluster, first));
    }
    // A pad and an entry that reach the keeper alone; then their leader dies.
    for (const ReplicaId id : others)
        if (id != keeper) cluster.network().hold(Kind::piece, first, id);
    cluster.propose(first, 400);
    cluster.run_for(2 * kMs);
    cluster.pause(keeper);
    for (const ReplicaId id : others) {
        cluster.network().drop_held(Kind::piece, first, id);
        if (id != lagging) cluster.network().hold(Kind::piece, id, lagging);
    }
    cluster.crash(first);
    ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
    const ReplicaId second = *cluster.leader();
    ASSERT_NE(second, keeper);
    ASSERT_NE(second, lagging);
    // The next leader fills the lap without a pad, and the keeper follows.
    cluster.resume(keeper);
    cluster.run_for(30 * kMs);
    for (int i = 0; i < 8 && cluster.core(second).end().position.value < kRing + 64; ++i) {
        cluster.propose(second, 16);
        cluster.run_for(20 * kMs);
    }
    cluster.run_for(100 * kMs);
    ASSERT_GE(cluster.core(keeper).commit().position.value, kRing);
    ASSERT_LT(cluster.core(lagging).commit().position.value, kRing);
    for (const ReplicaId id : others) {
        cluster.network().drop_held(Kind::piece, id, lagging);
        cluster.network().release(Kind::piece, id, lagging);
    }
    // Now the keeper leads, and repairs the one that lacks the end of that lap.
    cluster.crash(second);
    ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
    EXPECT_TRUE(progresses(cluster)) << cluster.describe();
    cluster.run_for(500 * kMs);
    const Index committed = cluster.core(*cluster.leader()).commit().index;
    for (const ReplicaId id : cluster.ids())
        EXPECT_EQ(cluster.core(id).applied().index, committed) << cluster.describe();
}

// Reads that a leader without contact could not answer gathered without a bound.
TEST_F(Regression, reads_that_wait_are_bounded) {
    Cluster::Options small = options(3, 1);
    small.max_queued = 16;
    Cluster cluster(small);
    cluster.start_all();
    ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
    cluster.run_for(50 * kMs);
    const ReplicaId leader = *cluster.leader();
    for (const ReplicaId id : cluster.ids()) cluster.network().hold(Kind::completion, id, leader);
    std::map<Reason, int> ends;
    const Replica::Done done = [&](const Outcome& outcome) {
        ++ends[outcome.fate == Fate::rejected ? outcome.reason : Reason::none];
    };
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(cluster.read(leader, done)) << "the queue is taken from at every turn";
        cluster.run_for(100'000);
    }
    EXPECT_EQ(cluster.driver(leader).waiting_reads(), 16u);
    EXPECT_EQ(ends, (std::map<Reason, int>{{Reason::busy, 4}}));
    for (const ReplicaId id : cluster.ids()) cluster.network().release(Kind::completion, id, leader);
    cluster.run_for(5 * kMs);
    EXPECT_EQ(ends, (std::map<Reason, int>{{Reason::none, 16}, {Reason::busy, 4}}));
    EXPECT_EQ(cluster.driver(leader).waiting_reads(), 0u);
}

}  // namespace
}  // namespace lockstep::sim
