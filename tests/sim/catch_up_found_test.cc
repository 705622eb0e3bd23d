// What a hostile reading of catching up has found, kept; and all faults at once, by seed.
#include "tests/sim/catch_up.h"

#include "consensus/core/random.h"
#include "log/wal/format.h"

#include <vector>

namespace lockstep::sim {
namespace {

// Of messages, lanes, reads and the state machine.
void draw(core::Random& random, transport::sim::Faults& faults) {
    faults.message_lost_chance = random.below(50'000);
    faults.message_repeated_chance = random.below(300'000);
    faults.repeated_late_ns = random.below(60 * kMs) + 1;
    faults.lane_breaks_chance = random.below(20'000);
    faults.completion_lost_chance = random.below(5'000);
    faults.piece_bytes = random.below(2) == 0 ? 0 : 64 + random.below(2000);
    faults.apply_slow_chance = random.below(2) == 0 ? 0 : random.below(30'000);
    faults.apply_slow_ns = 10 * kMs;
    faults.slow_chance = random.below(2) == 0 ? 0 : random.below(30'000);
    faults.slow_ns = 10 * kMs;
    faults.read_slow_chance = random.below(2) == 0 ? 0 : 100'000;
    faults.read_slow_ns = 60 * kMs;
    faults.tells_landed = random.below(2);
}

void burst(Cluster& cluster, core::Random& random) {
    const std::uint64_t end_ns = cluster.network().now_ns() + random.below(150 * kMs);
    std::uint64_t count = random.below(300);
    while (cluster.network().now_ns() < end_ns && count > 0) {
        const auto leader = cluster.leader();
        if (leader && cluster.driver(*leader).waiting_proposals() < 16) {
            cluster.propose(*leader, random.below(8) == 0 ? random.below(3900) : random.below(400));
            --count;
        }
        cluster.run_for(20'000 + random.below(200'000));
    }
}

// All that was held, paused and cut is over: then all get on.
void heals(Cluster& cluster, ReplicaId x, ReplicaId z, ReplicaId f) {
    using Kind = transport::sim::Network::Kind;
    auto& net = cluster.network();
    cluster.run_for(3'000 * kMs);
    cluster.resume(z);
    cluster.run_for(50 * kMs);
    net.heal_all();
    net.release(Kind::message, x, f);
    net.release(Kind::message, z, f);
    net.release(Kind::piece, x, z);
}

// Another one than `x`, in a ballot above `b1`, and commits.
bool others_elect(Cluster& cluster, ReplicaId x, Ballot b1) {
    cluster.run_for(130 * kMs);
    cluster.resume(x);
    const bool elected = cluster.run_until(3000 * kMs, [&] {
        const auto leader = cluster.leader();
        return leader && cluster.core(*leader).promised() > b1;
    });
    EXPECT_TRUE(elected) << cluster.describe();
    if (!elected || *cluster.leader() == x) return false;
    for (int i = 0; i < 10; ++i) {
        cluster.propose(*cluster.leader(), 100);
        cluster.run_for(2 * kMs);
    }
    cluster.run_for(30 * kMs);
    return true;
}

// A follower learns what is committed in ballots above the one that it has promised, and then promises one in between.
TEST_F(CatchUp, no_promise_is_given_below_a_commit_that_was_fetched) {
    std::size_t reached = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster::Options o = options(Durability::memory, seed);
        o.replicas = 5;
        Cluster cluster(o);
        form(cluster);
        const ReplicaId x = *cluster.leader();
        std::vector<ReplicaId> others = cluster.ids();
        std::erase(others, x);
        const ReplicaId z = others[0], w = others[1], y = others[2], f = others[3];
        auto& net = cluster.network();
        using Kind = transport::sim::Network::Kind;
        // f is away, and far behind.
        cut_off(cluster, f);
        fill(cluster, 5);
        cluster.run_for(20 * kMs);
        // z lacks the newest entries.
        net.hold(Kind::piece, x, z);
        for (int i = 0; i < 5; ++i) cluster.propose(x, 100);
        cluster.run_for(5 * kMs);
        // f is back, but hears x only; what z tells it is late.
        net.hold(Kind::message, z, f);
        net.heal(x, f);
        net.heal(f, x);
        ASSERT_TRUE(cluster.run_until(500 * kMs, [&] { return cluster.core(f).catching_up(); })) << cluster.describe();
        net.hold(Kind::message, x, f);
        net.heal(z, f);
        net.heal(f, z);
        cluster.run_for(5 * kMs);
        // x pauses; z campaigns, and takes long to adopt.
        net.cut(z, x);
        cluster.pause(x);
        ASSERT_TRUE(cluster.run_until(1000 * kMs, [&] {
            return cluster.core(z).role() == Role::candidate || cluster.core(w).role() == Role::candidate ||
                   cluster.core(y).role() == Role::candidate;
        }));
        if (cluster.core(z).role() != Role::candidate) continue;
        net.faults().read_slow_chance = 1'000'000;
        net.faults().read_slow_ns = 3'000 * kMs;
        cluster.run_for(1 * kMs);
        if (cluster.core(z).role() != Role::candidate) continue;
        const Ballot b1 = cluster.core(z).promised();
        if (cluster.core(w).promised() != b1 || cluster.core(y).promised() != b1) continue;
        cluster.pause(z);
        net.faults() = {};
        for (const ReplicaId id : {x, w, y}) net.cut(id, z);
        if (!others_elect(cluster, x, b1)) continue;
        // f catches up from x.
        net.release(Kind::message, x, f);
        ASSERT_TRUE(cluster.run_until(2000 * kMs, [&] { return cluster.core(f).commit().ballot > b1; }))
            << cluster.describe();
        EXPECT_LT(cluster.core(f).promised(), b1);
        // Now the late prepare comes.
        net.release(Kind::message, z, f);
        cluster.run_for(1 * kMs);
        ++reached;
        heals(cluster, x, z, f);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(reached, 5u);
}

// The leader cannot take a snapshot at first; then it could, but nobody proposes anything.
TEST_F(CatchUp, a_snapshot_that_failed_is_tried_again_in_a_quiet_cluster) {
    Cluster cluster(options(Durability::memory, 3));
    form(cluster);
    const ReplicaId leader = *cluster.leader();
    const ReplicaId away = other_than(leader);
    cut_off(cluster, away);
    fill(cluster, 5);
    cluster.snapshot_disk(leader).limit(100);
    cluster.network().heal_all();
    cluster.run_for(300 * kMs);
    cluster.snapshot_disk(leader).limit(~std::uint64_t{0});
    EXPECT_TRUE(all_equal(cluster, 60'000 * kMs)) << cluster.describe();
}

// The snapshot that the leader hands out has rotted on its disk since it was taken, or was cut short.
TEST_F(CatchUp, a_bad_snapshot_is_not_handed_out_for_ever) {
    const auto spoil = [](log::SimDisk& disk, bool cut_short) {
        const auto files = disk.list();
        ASSERT_TRUE(files.ok());
        for (const log::FileInfo& file : files.value()) {
            auto bytes = disk.contents(file.name);
            if (cut_short) bytes.resize(file.bytes / 2);
            else bytes[file.bytes / 2] ^= std::byte{8};
            disk.put(file.name, std::move(bytes));
        }
    };
    for (const bool cut_short : {false, true}) {
        for (const Durability durability : {Durability::memory, Durability::durable}) {
            SCOPED_TRACE(std::string(to_string(durability)) + (cut_short ? ", cut short" : ", rotten"));
            Cluster cluster(options(durability, 3, {.bytes = durability == Durability::durable ? 40'000u : 0u}));
            form(cluster);
            const ReplicaId leader = *cluster.leader();
            const ReplicaId away = other_than(leader);
            cut_off(cluster, away);
            fill(cluster, 12);
            // In memory mode only one that is taken for somebody is there: the moment it is, it is spoilt.
            if (durability == Durability::memory) cluster.network().heal_all();
            else cluster.run_for(300 * kMs);
            ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] {
                return cluster.driver(leader).status().snapshot.value != 0;
            }));
            spoil(cluster.snapshot_disk(leader), cut_short);
            cluster.network().heal_all();
            EXPECT_TRUE(all_equal(cluster, 60'000 * kMs)) << cluster.describe();
        }
    }
}

// A replica's last batch rots after it was acknowledged. It is suspect (S14) until that is made up for: on its disk.
TEST_F(CatchUp, a_loss_is_forgiven_on_disk_only_when_what_makes_up_for_it_is_there) {
    for (std::uint64_t step = 0; step < 100; ++step) {
        SCOPED_TRACE("step " + std::to_string(step));
        Cluster cluster(options(Durability::durable, 5));
        form(cluster);
        const ReplicaId b = *cluster.leader();
        const ReplicaId a = other_than(b);
        const ReplicaId c = other_than(a);
        cut_off(cluster, c);
        cluster.run_for(200 * kMs);
        if (cluster.leader() != b) continue;
        for (int i = 0; i < 5; ++i) {
            const std::size_t before = cluster.history().acknowledged();
            cluster.propose(b, 200);
            ASSERT_TRUE(cluster.run_until(1000 * kMs, [&] { return cluster.history().acknowledged() > before; }));
        }
        // The last one is on a's disk and on b's.
        const Position kept = cluster.core(a).kept().position;
        cluster.crash(a);
        const Position first{kept.value & ~std::uint64_t{16 * 1024 - 1}};
        cluster.disk(a).flip_bit(log::segment_name(1, first), log::kSegmentDataOffset + (kept - first) - 100, 3);
        cluster.restart(a);
        if (!cluster.alive(a)) continue;
        cluster.disk(a).hang(true);  // a slow disk, for the moment
        const auto back = cluster.run_until(500 * kMs, [&] { return cluster.core(a).loss() == core::Loss::none; });
        if (!back) continue;
        cluster.disk(a).hang(false);
        cluster.run_for(step * 60'000);
        cluster.crash(b);
        cluster.crash(a, true);
        cluster.network().heal_all();
        cluster.restart(a);
        for (int i = 0; i < 10; ++i) {
            if (const auto leader = cluster.leader()) cluster.propose(*leader);
            cluster.run_for(100 * kMs);
        }
    }
}

void revive(Cluster& cluster) {
    for (std::uint8_t id = 1; id <= cluster.replicas(); ++id)
        if (!cluster.alive(ReplicaId{id})) cluster.restart(ReplicaId{id});
}

ReplicaId any_of(const Cluster& cluster, core::Random& random) {
    return ReplicaId{static_cast<std::uint8_t>(1 + random.below(cluster.replicas()))};
}

void act_once(Cluster& cluster, core::Random& random, bool durable) {
    const ReplicaId id = any_of(cluster, random);
    switch (random.below(13)) {
        case 0:
            if (durable && cluster.alive(id)) cluster.crash(id, random.below(2) == 0);
            break;
        case 1:
        case 2:
            if (durable) revive(cluster);
            break;
        case 3:
            if (cluster.alive(id) && !cluster.paused(id)) cluster.pause(id);
            break;
        case 4:
            for (const ReplicaId one : cluster.ids())
                if (cluster.paused(one)) cluster.resume(one);
            break;
        case 5: {
            const ReplicaId to = any_of(cluster, random);
            if (to == id) break;
            cluster.network().cut(id, to);
            if (random.below(2) == 0) cluster.network().cut(to, id);
            break;
        }
        case 6:
            for (const ReplicaId other : cluster.ids()) {
                if (other == id) continue;
                cluster.network().cut(id, other);
                cluster.network().cut(other, id);
            }
            break;
        case 7:
            cluster.network().heal_all();
            break;
        case 8:
            if (durable && cluster.alive(id)) cluster.disk(id).hang(random.below(2) == 0);
            break;
        case 9:
            if (cluster.alive(id)) cluster.snapshot_disk(id).hang(random.below(2) == 0);
            break;
        case 10:
            if (cluster.alive(id)) cluster.hang(id, random.below(120 * kMs));
            break;
        case 11:
            if (cluster.alive(id)) cluster.driver(id).take_snapshot([](const Result<Index>&) {});
            break;
        default: break;
    }
}

// Everything at once.
TEST_F(CatchUp, all_faults_at_once) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed * 7919);
        const bool durable = random.below(3) != 0;
        Cluster::Options o = options(durable ? Durability::durable : Durability::memory, seed,
                                     {.bytes = random.below(3) == 0 ? 0 : 5'000 + random.below(60'000)});
        o.replicas = random.below(3) == 0 ? 5 : 3;
        if (random.below(3) == 0) o.drift_ppm = 1000;
        Cluster cluster(o);
        form(cluster);
        auto& net = cluster.network();
        auto& faults = net.faults();
        if (random.below(2) == 0) {
            draw(random, faults);
        }
        const std::uint64_t acts = 10 + random.below(30);
        for (std::uint64_t i = 0; i < acts; ++i) {
            cluster.run_for(random.below(random.below(2) == 0 ? 3 * kMs : 80 * kMs));
            act_once(cluster, random, durable);
            if (random.below(3) != 0) burst(cluster, random);
        }
        net.faults() = {};
        net.heal_all();
        if (durable) revive(cluster);
        for (const ReplicaId id : cluster.ids()) {
            if (cluster.paused(id)) cluster.resume(id);
            if (durable) cluster.disk(id).hang(false);
            cluster.snapshot_disk(id).hang(false);
        }
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster, 30'000 * kMs)) << cluster.describe();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
}

}  // namespace
}  // namespace lockstep::sim
