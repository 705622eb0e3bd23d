// Replicas that fall behind what the others' memory holds, and come back: by the others' logs on disk, or by snapshots.
#include "tests/sim/catch_up.h"

#include "consensus/core/random.h"

namespace lockstep::sim {
namespace {

TEST_F(CatchUp, in_memory_mode_a_follower_that_was_away_for_long_comes_back_by_a_snapshot) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Cluster cluster(options(Durability::memory, seed));
        form(cluster);
        const ReplicaId away = other_than(*cluster.leader());
        cut_off(cluster, away);
        fill(cluster, 5);
        const Index before = cluster.core(away).applied().index;
        cluster.network().heal_all();
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        EXPECT_GT(cluster.core(away).applied().index, before);
        EXPECT_EQ(cluster.core(away).applied(), cluster.core(*cluster.leader()).applied());
        cluster.history().check_complete();
    }
}

// While the one takes its snapshot, the others go on, and further than a ring: what it needs afterwards is kept for it.
TEST_F(CatchUp, the_others_go_on_meanwhile) {
    Cluster cluster(options(Durability::memory, 7));
    form(cluster);
    const ReplicaId away = other_than(*cluster.leader());
    cut_off(cluster, away);
    fill(cluster, 20);
    cluster.network().heal_all();
    bool caught_up = false;
    fill(cluster, 1);
    for (int i = 0; i < 3000 && !caught_up; ++i) {
        fill(cluster, 1);
        caught_up = cluster.driver(*cluster.leader()).core().lane_to(away).state == core::Lane::State::open;
    }
    EXPECT_TRUE(caught_up) << cluster.describe();
    ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
    cluster.history().check_complete();
}

// The leader is gone for good, and the other survivor lags by more than a ring: together they are a majority still.
TEST_F(CatchUp, one_that_is_far_behind_is_a_majority_with_the_only_one_that_is_not) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Cluster cluster(options(Durability::memory, seed));
        form(cluster);
        const ReplicaId leader = *cluster.leader();
        cut_off(cluster, other_than(leader));
        fill(cluster, 4);
        cluster.crash(leader);
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

// Section 8: a snapshot takes the place of a tail that is of another log, however far that goes.
TEST_F(CatchUp, a_tail_of_another_log_does_not_outlive_the_snapshot_in_its_place) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::memory, seed));
        form(cluster);
        ASSERT_TRUE(progresses(cluster));
        const ReplicaId away = *cluster.leader();
        const Index common = cluster.core(away).commit().index;
        cut_off(cluster, away);
        // Short commands that are never committed: many an index in one ring.
        for (int i = 0; i < 60; ++i) cluster.propose(away, 10);
        cluster.run_for(10 * kMs);
        ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] {
            const auto leader = cluster.leader();
            return leader && *leader != away;
        }));
        // Long ones, with fewer indices in several rings.
        const ReplicaId leader = *cluster.leader();
        while (cluster.core(leader).commit().index.value < common.value + 30) {
            ASSERT_EQ(cluster.leader(), leader);
            if (cluster.driver(leader).waiting_proposals() < 2) cluster.propose(leader, 3500);
            cluster.run_for(kMs);
        }
        cluster.network().heal_all();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        EXPECT_NE(cluster.driver(leader).status().snapshot, Index{});
        cluster.history().check_complete();
    }
}

TEST_F(CatchUp, in_durable_mode_the_log_on_disk_is_enough) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(Durability::durable, seed));
        form(cluster);
        const ReplicaId away = other_than(*cluster.leader());
        cluster.crash(away);
        fill(cluster, 5);
        cluster.restart(away);
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        for (const ReplicaId id : cluster.ids()) EXPECT_EQ(cluster.driver(id).status().snapshot, Index{});
        cluster.history().check_complete();
    }
}

TEST_F(CatchUp, the_log_on_disk_goes_behind_snapshots_and_all_come_back_with_them) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(Durability::durable, seed, {.bytes = 40'000}));
        form(cluster);
        fill(cluster, 12);
        cluster.run_for(1000 * kMs);
        for (const ReplicaId id : cluster.ids()) {
            EXPECT_GT(cluster.driver(id).status().snapshot.value, 100u);
            const auto files = cluster.disk(id).list();
            ASSERT_TRUE(files.ok());
            EXPECT_LE(files.value().size(), 8u) << "segments that snapshots cover are gone";
        }
        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
        for (std::uint8_t id = 1; id <= 3; ++id) cluster.restart(ReplicaId{id});
        ASSERT_EQ(cluster.ids().size(), 3u);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

TEST_F(CatchUp, where_the_log_on_disk_does_not_reach_back_a_snapshot_does) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Cluster cluster(options(Durability::durable, seed, {.bytes = 40'000}));
        form(cluster);
        const ReplicaId away = other_than(*cluster.leader());
        cluster.crash(away, seed % 2 == 0);
        fill(cluster, 12);
        cluster.restart(away);
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        // What it has is on its own disk.
        cluster.crash(away, true);
        fill(cluster, 1);
        cluster.restart(away);
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

// Leaders change and the one that catches up crashes, at any moment of it.
TEST_F(CatchUp, any_crash_and_any_change_of_leader_in_the_middle_is_overcome) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        const bool durable = random.below(3) != 0;
        Cluster cluster(options(durable ? Durability::durable : Durability::memory, seed,
                                {.bytes = random.below(2) == 0 ? 0 : 20'000 + random.below(60'000)}));
        form(cluster);
        ReplicaId away = other_than(*cluster.leader());
        if (durable && random.below(2) == 0) cluster.crash(away, true);
        else cut_off(cluster, away);
        fill(cluster, 2 + random.below(8));
        if (random.below(2) == 0) {
            auto& faults = cluster.network().faults();
            faults.message_lost_chance = random.below(100'000);
            faults.message_repeated_chance = random.below(100'000);
            faults.repeated_late_ns = 20 * kMs;
            faults.lane_breaks_chance = random.below(20'000);
        }
        cluster.network().heal_all();
        if (!cluster.alive(away)) cluster.restart(away);
        for (int act = 0; act < 6; ++act) {
            cluster.run_for(random.below(random.below(2) == 0 ? 5 * kMs : 60 * kMs));
            switch (random.below(5)) {
                case 0:
                    if (durable && cluster.alive(away)) {
                        cluster.crash(away, random.below(2) == 0);
                        cluster.restart(away);
                    }
                    break;
                case 1:
                    if (const auto leader = cluster.leader(); leader && *leader != away) {
                        cluster.pause(*leader);
                        cluster.run_for(250 * kMs);
                        cluster.resume(*leader);
                    }
                    break;
                case 2:
                    if (const auto leader = cluster.leader(); leader && durable) {
                        cluster.crash(*leader, random.below(2) == 0);
                        cluster.run_for(random.below(200 * kMs));
                        for (std::uint8_t id = 1; id <= 3; ++id)
                            if (!cluster.alive(ReplicaId{id})) cluster.restart(ReplicaId{id});
                    }
                    break;
                case 3:
                    if (durable && cluster.alive(away)) {
                        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
                        for (std::uint8_t id = 1; id <= 3; ++id) cluster.restart(ReplicaId{id});
                    }
                    break;
                default:
                    for (std::uint64_t i = random.below(60); i > 0; --i)
                        if (const auto leader = cluster.leader()) cluster.propose(*leader, random.below(500));
            }
        }
        cluster.network().faults() = {};
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

// A disk without room for the snapshot: its replica stays behind and says so; the others do not care; with room again
// it comes back.
TEST_F(CatchUp, a_full_disk_keeps_a_follower_out_until_there_is_room) {
    Cluster cluster(options(Durability::memory, 3));
    form(cluster);
    const ReplicaId away = other_than(*cluster.leader());
    cut_off(cluster, away);
    fill(cluster, 5);
    cluster.snapshot_disk(away).limit(100);
    cluster.network().heal_all();
    fill(cluster, 2);
    cluster.run_for(2000 * kMs);
    ASSERT_TRUE(cluster.alive(away));
    EXPECT_TRUE(cluster.core(away).catching_up());
    EXPECT_NE(cluster.driver(away).status().note.find("did not get here"), std::string::npos)
        << cluster.driver(away).status().note;
    ASSERT_TRUE(progresses(cluster));
    cluster.snapshot_disk(away).limit(~std::uint64_t{0});
    ASSERT_TRUE(all_equal(cluster, 30'000 * kMs)) << cluster.describe();
    cluster.history().check_complete();
}

}  // namespace
}  // namespace lockstep::sim
