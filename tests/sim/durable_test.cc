// Replicas that keep their log on disk: processes end and power is lost, of one, some or all; they come back with what
// their disks hold, and nothing that was acknowledged is missing.
#include "sim/cluster.h"
#include "tests/sim/progress.h"

#include "consensus/core/random.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace lockstep::sim {
namespace {

std::uint64_t seeds() { return sim::seeds(250); }

class Durable : public testing::Test {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }

    static Cluster::Options options(std::size_t replicas, std::uint64_t seed, Durability durability) {
        Cluster::Options options;
        options.replicas = replicas;
        options.seed = seed;
        options.durability = durability;
        return options;
    }
    static bool formed(Cluster& cluster) {
        return cluster.run_until(5000 * kMs, [&] { return cluster.leader().has_value(); });
    }
    static bool all_equal(Cluster& cluster) { return sim::all_equal(cluster, 5000 * kMs); }
};

TEST_F(Durable, an_entry_is_acknowledged_only_when_a_majority_has_it_on_disk) {
    Cluster cluster(options(3, 1, Durability::durable));
    cluster.start_all();
    ASSERT_TRUE(formed(cluster));
    const ReplicaId leader = *cluster.leader();
    ASSERT_TRUE(progresses(cluster));
    for (const ReplicaId id : cluster.ids())
        if (id != leader) cluster.disk(id).hang(true);
    const std::size_t before = cluster.history().acknowledged();
    ASSERT_TRUE(cluster.propose(leader));
    cluster.run_for(50 * kMs);
    EXPECT_EQ(cluster.history().acknowledged(), before);  // two hold it in memory, one on disk
    for (const ReplicaId id : cluster.ids()) cluster.disk(id).hang(false);
    cluster.run_for(50 * kMs);
    EXPECT_GT(cluster.history().acknowledged(), before);
}

// S6: the leader's own copy is like any other. (etcd issue 14370)
TEST_F(Durable, the_leaders_own_copy_counts_only_when_it_is_on_its_disk) {
    for (const std::size_t replicas : {1u, 3u}) {
        SCOPED_TRACE(std::to_string(replicas) + " replicas");
        Cluster cluster(options(replicas, 1, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        ASSERT_TRUE(progresses(cluster));
        const ReplicaId leader = *cluster.leader();
        const auto acknowledged = [&] { return cluster.history().acknowledged(); };
        cluster.disk(leader).hang(true);
        // Of three, one of the others is to be enough for a majority with the leader's, and is not.
        const ReplicaId other{static_cast<std::uint8_t>(leader.value % 3 + 1)};
        if (replicas == 3) cluster.disk(other).hang(true);
        const std::size_t before = acknowledged();
        ASSERT_TRUE(cluster.propose(leader));
        cluster.run_for(50 * kMs);
        EXPECT_EQ(acknowledged(), before) << "the own copy counts before it is on disk";
        if (replicas == 3) {
            // The other two are a majority.
            cluster.disk(other).hang(false);
            cluster.run_for(20 * kMs);
            EXPECT_GT(acknowledged(), before);
        }
        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
        for (std::size_t i = 1; i <= replicas; ++i) cluster.restart(ReplicaId{static_cast<std::uint8_t>(i)});
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

// S8: a promise changes nothing on disk: what was acknowledged is still there when its candidate has come to nothing.
TEST_F(Durable, a_promise_cuts_nothing_on_disk) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(3, seed, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        ASSERT_TRUE(progresses(cluster));
        const ReplicaId leader = *cluster.leader();
        const ReplicaId holder{static_cast<std::uint8_t>(leader.value % 3 + 1)};
        const ReplicaId third{static_cast<std::uint8_t>(6 - leader.value - holder.value)};
        cluster.network().cut(leader, third);
        cluster.run_for(5 * kMs);
        // Committed with the holder, which does not hear of that.
        const std::size_t before = cluster.history().acknowledged();
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(cluster.propose(leader, 200));
        ASSERT_TRUE(cluster.run_until(50 * kMs, [&] { return cluster.history().acknowledged() > before; }));
        const Ballot old = cluster.core(holder).promised();
        cluster.crash(leader);
        cluster.network().heal_all();
        ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.core(holder).promised() > old; }));
        // Neither gets any further.
        cluster.network().cut(holder, third);
        cluster.network().cut(third, holder);
        cluster.run_for(seed * kMs / 4);
        for (const ReplicaId id : {holder, third}) cluster.crash(id, true);
        for (const ReplicaId id : {holder, third}) cluster.restart(id);
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

TEST_F(Durable, all_lose_power_and_come_back_with_everything) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Cluster cluster(options(3, seed, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        for (int round = 0; round < 5; ++round) {
            for (int i = 0; i < 40; ++i) {
                if (const auto leader = cluster.leader()) cluster.propose(*leader, 100);
                cluster.run_for(kMs / 10);
            }
            for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
            for (std::size_t i = 1; i <= 3; ++i) cluster.restart(ReplicaId{static_cast<std::uint8_t>(i)});
            ASSERT_TRUE(progresses(cluster)) << "seed " << seed << ", round " << round << "\n" << cluster.describe();
            ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << ", round " << round << "\n" << cluster.describe();
            cluster.history().check_complete();
        }
        EXPECT_GT(cluster.history().acknowledged(), 5u);
    }
}

// A follower that comes back knows as committed what it has reported as consumed: else its leaders no longer hold what
// it lacks, it stays detached, and with the leader the last majority is gone.
TEST_F(Durable, a_follower_that_came_back_is_a_majority_with_the_third) {
    for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds(), 60); ++seed) {
        core::Random random(seed);
        Cluster cluster(options(3, seed, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        ASSERT_TRUE(progresses(cluster));
        for (int burst = 0; burst < 3; ++burst) {
            for (int i = 0; i < 55; ++i) cluster.propose(*cluster.leader(), 100);
            cluster.run_for(30 * kMs);
        }
        for (std::uint64_t i = random.below(40); i > 0; --i) cluster.propose(*cluster.leader(), 100);
        cluster.run_for(random.below(2 * kMs));
        const ReplicaId victim{static_cast<std::uint8_t>(cluster.leader()->value == 3 ? 2 : 3)};
        cluster.crash(victim);
        cluster.restart(victim);
        for (int i = 0; i < 10; ++i) {
            if (cluster.leader()) cluster.propose(*cluster.leader(), 100);
            cluster.run_for(kMs);
        }
        cluster.run_for(1000 * kMs);
        cluster.crash(*cluster.leader());
        ASSERT_TRUE(progresses(cluster)) << "seed " << seed << "\n" << cluster.describe();
    }
}

// S14: a replica is suspect after a power loss until a leader that was elected in spite of that has committed, and not
// again when it starts anew.
TEST_F(Durable, a_loss_is_made_up_for) {
    for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds(), 40); ++seed) {
        Cluster cluster(options(3, seed, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 40; ++i) {
                if (const auto leader = cluster.leader()) cluster.propose(*leader, 400);
                cluster.run_for(kMs / 10);
            }
            for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
            for (std::uint8_t id = 1; id <= 3; ++id) cluster.restart(ReplicaId{id});
            ASSERT_TRUE(progresses(cluster));
            ASSERT_TRUE(all_equal(cluster));
        }
        cluster.run_for(1000 * kMs);
        for (const ReplicaId id : cluster.ids()) EXPECT_EQ(cluster.core(id).loss(), core::Loss::none);
        for (const ReplicaId id : cluster.ids()) cluster.crash(id);
        for (std::uint8_t id = 1; id <= 2; ++id) cluster.restart(ReplicaId{id});
        for (const ReplicaId id : cluster.ids()) EXPECT_EQ(cluster.core(id).loss(), core::Loss::none);
        ASSERT_TRUE(progresses(cluster)) << "seed " << seed << "\n" << cluster.describe();
    }
}

// The same acknowledged entry has rotted on all: nobody goes on without it. ("Protocol-Aware Recovery", FAST 2018)
TEST_F(Durable, rot_of_one_entry_on_all_disks_stops_all_and_loses_nothing_silently) {
    Cluster cluster(options(3, 1, Durability::durable));
    cluster.start_all();
    ASSERT_TRUE(formed(cluster));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(progresses(cluster));
    ASSERT_TRUE(all_equal(cluster));
    const log::FileName file = log::segment_name(1, Position{0});
    constexpr std::uint64_t kSecondEntry = log::kSegmentDataOffset + log::kEntryAlignment + 20;
    for (const ReplicaId id : cluster.ids()) {
        cluster.crash(id, true);
        cluster.disk(id).flip_bit(file, kSecondEntry, 3);
    }
    for (std::uint8_t id = 1; id <= 3; ++id) cluster.restart(ReplicaId{id});
    cluster.run_for(3000 * kMs);
    EXPECT_FALSE(cluster.leader());
    for (const ReplicaId id : cluster.ids()) {
        EXPECT_EQ(cluster.core(id).loss(), core::Loss::corrupt);
        EXPECT_NE(cluster.driver(id).status().note.find("does not vote"), std::string::npos);
    }
    // One of them is brought back from where it was whole: still no majority. Two are one. All that was behind the
    // damage is there still.
    for (std::uint8_t id = 1; id <= 2; ++id) {
        cluster.crash(ReplicaId{id}, true);
        cluster.disk(ReplicaId{id}).flip_bit(file, kSecondEntry, 3);
        cluster.restart(ReplicaId{id});
        EXPECT_EQ(cluster.core(ReplicaId{id}).loss(), core::Loss::none);
        if (id == 1) {
            cluster.run_for(3000 * kMs);
            EXPECT_FALSE(cluster.leader());
        }
    }
    ASSERT_TRUE(progresses(cluster)) << cluster.describe();
    cluster.history().check_complete();
}

// S13: a replica whose disk failed once stops; the others go on. Started again it trusts nothing that did not get to
// the disk, though the system still shows it.
TEST_F(Durable, a_disk_that_fails_stops_its_replica) {
    for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds(), 40); ++seed) {
        Cluster cluster(options(3, seed, Durability::durable));
        cluster.start_all();
        ASSERT_TRUE(formed(cluster));
        ASSERT_TRUE(progresses(cluster));
        const ReplicaId victim{static_cast<std::uint8_t>(1 + seed % 3)};
        cluster.disk(victim).fail_next(log::DiskOperation::Kind::sync);
        for (int i = 0; i < 20 && cluster.alive(victim); ++i) {
            if (const auto leader = cluster.leader()) cluster.propose(*leader, 300);
            cluster.run_for(10 * kMs);
        }
        ASSERT_FALSE(cluster.alive(victim));
        ASSERT_TRUE(progresses(cluster));
        cluster.restart(victim);
        cluster.run_for(kMs * (seed % 7));
        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);
        for (std::uint8_t id = 1; id <= 3; ++id) cluster.restart(ReplicaId{id});
        ASSERT_TRUE(progresses(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

TEST_F(Durable, any_crash_and_return_loses_nothing) {
    std::size_t acknowledged = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        const std::size_t replicas = random.below(3) == 0 ? 5 : 3;
        Cluster::Options chosen = options(replicas, seed, Durability::durable);
        if (random.below(2) == 0) chosen.snapshot_after.bytes = 10'000 + random.below(100'000);
        Cluster cluster(chosen);
        transport::sim::Faults& faults = cluster.network().faults();
        if (random.below(2) == 0) disturb(faults, random);
        cluster.start_all();
        ASSERT_TRUE(formed(cluster)) << "seed " << seed;
        for (int act = 0; act < 120; ++act) {
            const ReplicaId id{static_cast<std::uint8_t>(1 + random.below(replicas))};
            switch (random.below(10)) {
                case 0:
                    if (cluster.alive(id)) cluster.crash(id, random.below(2) == 0);
                    break;
                case 1:
                    if (const auto leader = cluster.leader(); leader && random.below(2) == 0)
                        cluster.crash(*leader, random.below(2) == 0);
                    break;
                case 2:
                case 3:
                    if (!cluster.alive(id)) cluster.restart(id);
                    break;
                case 4:
                    if (cluster.alive(id)) cluster.disk(id).hang(!cluster.disk(id).hung());
                    break;
                case 5:
                    if (random.below(8) == 0 && cluster.alive(id))
                        cluster.disk(id).fail_next(random.below(2) == 0 ? log::DiskOperation::Kind::sync
                                                                        : log::DiskOperation::Kind::write);
                    if (random.below(8) == 0)
                        for (const ReplicaId one : cluster.ids()) cluster.crash(one, true);
                    break;
                default:
                    for (std::uint64_t i = random.below(20); i > 0; --i)
                        if (const auto leader = cluster.leader()) cluster.propose(*leader, random.below(500));
            }
            cluster.run_for(random.below(random.below(4) == 0 ? 100 * kMs : 2 * kMs));
        }
        faults = {};
        for (const ReplicaId id : cluster.ids()) cluster.crash(id, true);  // which ends what the disks were to do
        for (std::size_t i = 1; i <= replicas; ++i) {
            const ReplicaId id{static_cast<std::uint8_t>(i)};
            cluster.disk(id).hang(false);
            // A fault that was planned for its disk may meet its start.
            for (int attempt = 0; attempt < 3 && !cluster.alive(id); ++attempt) cluster.restart(id);
        }
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
        acknowledged += cluster.history().acknowledged();
    }
    EXPECT_GT(acknowledged, seeds() * 10);
}

}  // namespace
}  // namespace lockstep::sim
