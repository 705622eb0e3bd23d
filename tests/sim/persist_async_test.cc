// persist_async: entries count where they have landed, and the log goes to disk behind them. What the disk does, or
// does not do, holds no commit up before the ring is full; what is on it is the log.
#include "sim/draw.h"
#include "sim/run.h"
#include "tests/sim/catch_up.h"

#include "consensus/core/random.h"
#include "log/wal/recovery.h"

#include <vector>

namespace lockstep::sim {
namespace {

class PersistAsync : public CatchUp {
 protected:
    static Cluster::Options options(std::uint64_t seed, replica::SnapshotTriggers after = {}) {
        return CatchUp::options(Durability::persist_async, seed, after);
    }
    static void hang_all(Cluster& cluster, bool hung) {
        for (const ReplicaId id : cluster.ids()) cluster.disk(id).hang(hung);
    }
    // The log on the disk of `id`, read back and verified as `lockstep log` does.
    static log::Point on_disk(Cluster& cluster, ReplicaId id) {
        const std::uint64_t ring_bytes = cluster.core(id).ring().bytes();
        std::vector<std::byte> memory(ring_bytes + 4096);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        log::Ring ring(std::span(memory.data() + (4096 - address % 4096) % 4096, ring_bytes));
        auto found = log::recover(cluster.disk(id), {1, id, ring_bytes}, ring, {});
        if (!found.ok() || !found.value()) return {};
        EXPECT_EQ(found.value()->found, log::Damage::none) << found.value()->story;
        return found.value()->end;
    }
};

TEST_F(PersistAsync, no_commit_waits_for_a_disk_that_hangs) {
    Cluster cluster(options(1));
    form(cluster);
    ASSERT_TRUE(progresses(cluster));
    hang_all(cluster, true);
    const ReplicaId leader = *cluster.leader();
    const Position durable = cluster.core(leader).kept().position;
    for (int i = 0; i < 20; ++i) {
        const std::size_t before = cluster.history().acknowledged();
        ASSERT_TRUE(cluster.propose(leader, 100));
        ASSERT_TRUE(cluster.run_until(kMs, [&] { return cluster.history().acknowledged() > before; }));
    }
    cluster.run_for(500 * kMs);  // several election time-outs: as long as there is room, it does not matter
    EXPECT_EQ(cluster.leader(), leader);
    EXPECT_LE(cluster.core(leader).kept().position, durable + 4096);
    hang_all(cluster, false);
    ASSERT_TRUE(cluster.run_until(1000 * kMs, [&] {
        return cluster.core(leader).kept() == cluster.core(leader).commit();
    }));
    cluster.history().check_complete();
}

// S11: nothing is overwritten in the ring that is not on disk. A leader whose disk hangs gives way before that holds
// everybody up, and follows again when its disk is back.
TEST_F(PersistAsync, a_leader_whose_disk_holds_up_the_ring_gives_way) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(seed));
        form(cluster);
        const ReplicaId slow = *cluster.leader();
        cluster.disk(slow).hang(true);
        fill(cluster, 4);
        ASSERT_NE(cluster.leader(), slow) << cluster.describe();
        const core::Core& core = cluster.core(slow);
        EXPECT_LE(core.end().position - core.kept().position, core.ring().bytes());
        cluster.disk(slow).hang(false);
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

TEST_F(PersistAsync, a_follower_whose_disk_hangs_holds_nobody_up) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(seed));
        form(cluster);
        const ReplicaId leader = *cluster.leader();
        const ReplicaId slow = other_than(leader);
        cluster.disk(slow).hang(true);
        fill(cluster, 4);
        EXPECT_EQ(cluster.leader(), leader) << cluster.describe();
        cluster.disk(slow).hang(false);
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        cluster.history().check_complete();
    }
}

// S13, as in durable mode: what the disk holds from then on nobody knows.
TEST_F(PersistAsync, a_disk_that_fails_stops_its_replica_and_the_others_go_on) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Cluster cluster(options(seed));
        form(cluster);
        const ReplicaId victim = seed % 2 == 0 ? *cluster.leader() : other_than(*cluster.leader());
        cluster.disk(victim).fail_next(seed % 4 < 2 ? log::DiskOperation::Kind::sync : log::DiskOperation::Kind::write);
        for (int i = 0; i < 20 && cluster.alive(victim); ++i) {
            if (const auto leader = cluster.leader()) cluster.propose(*leader, 300);
            cluster.run_for(10 * kMs);
        }
        ASSERT_FALSE(cluster.alive(victim));
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        // Its disk is not counted: it comes back as another, and is taken in when it has learnt (S12).
        cluster.restart(victim);
        EXPECT_EQ(cluster.core(victim).role(), Role::forming);
        ASSERT_TRUE(progresses(cluster));
        EXPECT_TRUE(cluster.run_until(5000 * kMs, [&] { return cluster.core(victim).votes(); }));
        cluster.history().check_complete();
    }
}

TEST_F(PersistAsync, what_is_on_disk_is_the_log) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(seed));
        form(cluster);
        fill(cluster, 3);
        const ReplicaId first = *cluster.leader();
        cluster.pause(first);
        for (int i = 0; i < 5; ++i) cluster.propose(first, 100);  // which another leader's entries replace
        ASSERT_TRUE(cluster.run_until(5000 * kMs, [&] { return cluster.leader() && *cluster.leader() != first; }));
        fill(cluster, 1);
        cluster.resume(first);
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.run_for(100 * kMs);
        const log::Point end = cluster.core(*cluster.leader()).commit();
        for (const ReplicaId id : cluster.ids()) EXPECT_EQ(on_disk(cluster, id), end) << to_string(id);
    }
}

TEST_F(PersistAsync, one_that_fell_off_the_ring_catches_up_by_the_log_on_the_leaders_disk) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Cluster cluster(options(seed));
        form(cluster);
        const ReplicaId away = other_than(*cluster.leader());
        cut_off(cluster, away);
        fill(cluster, 5);
        cluster.network().heal_all();
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        for (const ReplicaId id : cluster.ids()) EXPECT_EQ(cluster.driver(id).status().snapshot, Index{});
        cluster.history().check_complete();
    }
}

TEST_F(PersistAsync, the_log_on_disk_goes_behind_snapshots) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Cluster cluster(options(seed, {.bytes = 40'000}));
        form(cluster);
        const ReplicaId away = other_than(*cluster.leader());
        cut_off(cluster, away);
        fill(cluster, 12);
        cluster.network().heal_all();
        ASSERT_TRUE(all_equal(cluster)) << "seed " << seed << "\n" << cluster.describe();
        fill(cluster, 12);
        cluster.run_for(1000 * kMs);
        for (const ReplicaId id : cluster.ids()) {
            EXPECT_GT(cluster.driver(id).status().snapshot.value, 100u);
            const auto files = cluster.disk(id).list();
            ASSERT_TRUE(files.ok());
            EXPECT_LE(files.value().size(), 8u);
        }
        cluster.history().check_complete();
    }
}

// Disks hang and fail, processes end while a majority's memory stays, the network does what it wants.
TEST_F(PersistAsync, any_fault_of_a_minority_loses_nothing) {
    std::size_t acknowledged = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        Cluster::Options chosen = options(seed);
        chosen.replicas = random.below(3) == 0 ? 5 : 3;
        chosen.ring_bytes = std::uint64_t{8 * 1024} << random.below(4);
        if (random.below(2) == 0) chosen.snapshot_after.bytes = 10'000 + random.below(100'000);
        Cluster cluster(chosen);
        cluster.start_all();
        ASSERT_TRUE(cluster.run_until(5000 * kMs, [&] { return cluster.leader().has_value(); }));
        transport::sim::Faults& faults = cluster.network().faults();
        if (random.below(2) == 0) disturb(faults, random);
        std::size_t may_end = (chosen.replicas - 1) / 2;
        for (int act = 0; act < 120; ++act) {
            const ReplicaId id{static_cast<std::uint8_t>(1 + random.below(chosen.replicas))};
            const bool there = cluster.alive(id);
            switch (random.below(10)) {
                case 0:
                case 1:
                    if (there) cluster.disk(id).hang(!cluster.disk(id).hung());
                    break;
                case 2:
                    if (!there || may_end == 0 || random.below(4) != 0) break;
                    --may_end;
                    if (random.below(2) == 0) cluster.crash(id, random.below(2) == 0);
                    else cluster.disk(id).fail_next(log::DiskOperation::Kind::sync);
                    break;
                case 3:
                    if (!there) break;
                    cut_off(cluster, id);
                    cluster.run_for(random.below(300 * kMs));
                    cluster.network().heal_all();
                    break;
                default:
                    for (std::uint64_t i = random.below(20); i > 0; --i)
                        if (const auto leader = cluster.leader()) cluster.propose(*leader, random.below(500));
            }
            cluster.run_for(random.below(random.below(4) == 0 ? 100 * kMs : 2 * kMs));
        }
        faults = {};
        hang_all(cluster, false);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
        acknowledged += cluster.history().acknowledged();
    }
    EXPECT_GT(acknowledged, seeds() * 10);
}

// The runs that memory mode is tested with: its rules hold, with a disk behind them.
TEST_F(PersistAsync, chaos_keeps_every_rule_and_recovers) {
    std::uint64_t acknowledged = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        Case drawn = draw(90'000'000 + seed);
        drawn.options.durability = Durability::persist_async;
        const RunResult result = run(drawn);
        ASSERT_EQ(result.failure, Failure::none) << "seed " << seed << ": " << result.what;
        acknowledged += result.acknowledged;
    }
    EXPECT_GT(acknowledged, seeds() * 10);
}

}  // namespace
}  // namespace lockstep::sim
