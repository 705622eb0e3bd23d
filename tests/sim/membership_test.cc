// Replicas whose memory or disk is gone: they come back as another incarnation, learn, and take their predecessor's
// place; and until then they count for nothing (S12, S16).
#include "sim/recovery.h"
#include "tests/sim/membership.h"

#include "consensus/core/random.h"

namespace lockstep::sim {
namespace {

class LostWhatItKnew : public Membership, public testing::WithParamInterface<Durability> {};

TEST_P(LostWhatItKnew, a_replica_is_a_voter_again_however_long_the_log_is) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(GetParam(), seed));
        form(cluster);
        if (seed % 3 == 0) fill(cluster, 1 + seed / 3);  // less than its ring holds, and more
        const ReplicaId lost = seed % 2 == 0 ? *cluster.leader() : other_than(*cluster.leader());
        const Incarnation before = cluster.incarnation(lost);
        replace(cluster, lost, GetParam());
        ASSERT_NE(cluster.incarnation(lost), before);
        ASSERT_NO_FATAL_FAILURE(is_whole_again(cluster));
    }
}

// Each in its turn, many times: nothing is left of those who began, and nothing is lost.
TEST_P(LostWhatItKnew, all_replicas_may_be_lost_one_after_the_other) {
    Cluster cluster(options(GetParam(), 5, {.bytes = 30'000}));
    form(cluster);
    for (int round = 0; round < 12; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        fill(cluster, 1);
        replace(cluster, {static_cast<std::uint8_t>(round % 3 + 1)}, GetParam());
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
    }
    ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
    cluster.history().check_complete();
}

// The one that forgot must not make up a majority with one that never knew (S12; tikv 3572, rethinkdb 5289).
TEST_P(LostWhatItKnew, one_that_is_not_admitted_is_no_majority_with_another) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(GetParam(), seed));
        form(cluster);
        const ReplicaId leader = *cluster.leader();
        const ReplicaId lost = other_than(leader);
        const ReplicaId third = other_than(lost);
        // What is acknowledged is on the leader and on the one that then forgets it, and hears at most that there is a
        // log, but not what is in it.
        cut_off(cluster, third);
        const bool learns = seed % 2 == 0;
        if (learns) {
            cluster.propose(leader);
            cluster.run_for(5 * kMs);
        } else {
            fill(cluster, 1);
        }
        replace(cluster, lost, GetParam());
        cluster.network().hold(transport::sim::Network::Kind::piece, leader, lost);
        const auto hears = [&] { return cluster.core(lost).promised() != Ballot{}; };
        ASSERT_TRUE(!learns || cluster.run_until(100 * kMs, hears)) << cluster.describe();
        cluster.network().cut(leader, lost);
        cluster.network().cut(lost, leader);
        cluster.network().heal(third, lost);
        cluster.network().heal(lost, third);
        const bool durable = GetParam() == Durability::durable;
        if (durable) cluster.crash(leader);
        const auto others_lead = [&] { return cluster.leader() && *cluster.leader() != leader; };
        EXPECT_FALSE(cluster.run_until(20'000 * kMs, others_lead)) << cluster.describe();
        // The one that knows is back: the cluster gets on, and holds it all.
        cluster.network().release(transport::sim::Network::Kind::piece, leader, lost);
        if (durable) cluster.restart(leader);
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

INSTANTIATE_TEST_SUITE_P(, LostWhatItKnew,
                         testing::Values(Durability::memory, Durability::persist_async, Durability::durable),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

// A config is part of the log: it is there after a restart, from a snapshot as from the log behind it.
TEST_F(Membership, who_votes_is_known_after_a_restart_of_all) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::durable, seed, {.bytes = seed % 2 == 0 ? 0u : 20'000u}));
        form(cluster);
        fill(cluster, 2);
        const ReplicaId lost = other_than(*cluster.leader());
        replace(cluster, lost, Durability::durable);
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        fill(cluster, seed % 5);
        const Incarnation life = cluster.incarnation(lost);
        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
        for (const ReplicaId id : members(cluster)) cluster.restart(id);
        ASSERT_EQ(cluster.incarnation(lost), life);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();  // what is suspect is made up for (S14)
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        // With the new voter as one of the only two.
        cluster.crash(other_than(lost));
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        cluster.restart(other_than(lost));
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

// A replica is removed by the life that follows it; should it turn up again, it takes no part (ClickHouse PR 118740).
TEST_F(Membership, losses_crashes_and_changes_of_leader_at_any_moment) {
    for (const std::uint64_t seed : these_and(seeds(), {503, 621, 5967})) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const TellsSeed tells{seed};
        core::Random random(seed);
        const Durability modes[] = {Durability::memory, Durability::persist_async, Durability::durable,
                                    Durability::durable};
        const Durability mode = modes[random.below(4)];
        const bool durable = mode == Durability::durable;
        const std::uint64_t snapshot_bytes = random.below(2) == 0 ? 0 : 20'000 + random.below(60'000);
        Cluster::Options chosen = options(mode, seed, {.bytes = snapshot_bytes});
        chosen.replicas = 2 + random.below(4);
        Cluster cluster(chosen);
        form(cluster);
        auto& faults = cluster.network().faults();
        if (random.below(2) == 0) {
            faults.message_lost_chance = random.below(100'000);
            faults.message_repeated_chance = random.below(100'000);
            faults.repeated_late_ns = 50 * kMs;
            faults.lane_breaks_chance = random.below(20'000);
        }
        const auto any = [&] { return ReplicaId{static_cast<std::uint8_t>(1 + random.below(cluster.replicas()))}; };
        for (int step = 0; step < 150; ++step) {
            const ReplicaId one = any();
            switch (random.below(10)) {
                case 0:
                case 1:
                    // In durable mode any may crash; what it knew may be lost where it would be in memory mode.
                    if (!cluster.alive(one)) {
                        cluster.restart(one);
                    } else if (may_crash(cluster, one)) {
                        cluster.crash(one, random.below(2) == 0);
                        if (durable) cluster.lose_disk(one);
                        if (random.below(4) != 0) cluster.restart(one);
                    }
                    break;
                case 2:
                    if (durable && cluster.alive(one) && random.below(3) == 0) {
                        cluster.crash(one, may_crash(cluster, one) && random.below(2) == 0);
                        cluster.restart(one);
                    }
                    break;
                case 3:
                    if (const ReplicaId other = any(); other != one && cluster.alive(one) && cluster.alive(other))
                        cluster.network().cut(one, other);
                    break;
                case 4:
                case 5:
                    cluster.network().heal_all();
                    break;
                case 6:
                    if (cluster.alive(one)) cluster.hang(one, random.below(200 * kMs));
                    break;
                default:
                    for (std::uint64_t n = random.below(40); n > 0 && cluster.leader(); --n)
                        cluster.propose(*cluster.leader(), 16 + random.below(400));
            }
            cluster.run_for(random.below(random.below(2) == 0 ? 2 * kMs : 60 * kMs));
        }
        faults = {};
        cluster.network().heal_all();
        for (const ReplicaId id : members(cluster))
            if (!cluster.alive(id)) cluster.restart(id);
        ASSERT_NO_FATAL_FAILURE(is_whole_again(cluster));
    }
}

}  // namespace
}  // namespace lockstep::sim
