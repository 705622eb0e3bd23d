// What an attack on the rules of membership (S5, S12, S14, S16) found.
#include "sim/recovery.h"
#include "tests/sim/membership.h"

#include "consensus/core/random.h"
#include "log/wal/format.h"

#include <array>
#include <exception>
#include <optional>
#include <vector>

namespace lockstep::sim {
namespace {

using Kind = transport::sim::Network::Kind;

class MembershipFound : public Membership {
 protected:
    static void part(Cluster& cluster, ReplicaId a, ReplicaId b) {
        cluster.network().cut(a, b);
        cluster.network().cut(b, a);
    }
    // Runs until the leader has taken the lost life out, with the follower's help, and has appended, but told only the
    // newcomer, the config that takes it in. False if it went otherwise.
    static bool until_taken_in_without(Cluster& cluster, ReplicaId leader, ReplicaId follower, bool commands) {
        const auto removed = [&] { return voters_in_ring(cluster, follower) + 1 == cluster.replicas(); };
        if (!cluster.run_until(5'000 * kMs, removed)) return false;
        cluster.network().hold(Kind::piece, leader, follower);
        const auto appended = [&] { return voters_in_ring(cluster, leader) == cluster.replicas(); };
        for (int i = 0; i < 60; ++i) {
            if (commands) cluster.propose(leader, 60);
            if (cluster.run_until(commands ? 100'000 : kMs, appended)) return removed();
        }
        return false;
    }
};

// S14 where a config names fewer than all: 1 and 2 vote; 3 is taken in, with 2 lagging; what 1 and 3 then commit is
// lost on 1 by rot in its last batch, with the config that names 3. "All voters" of what is left are 1 and 2.
TEST_F(MembershipFound, a_suspect_replica_may_have_lost_the_config_that_says_who_all_are) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::durable, seed));
        const auto [leader, lost, follower] = lose_one(cluster);
        if (!until_taken_in_without(cluster, leader, follower, seed % 2 == 1)) continue;
        const Index config = cluster.core(leader).newest_config().at;
        // ... and all that stands in the leader's log.
        if (!cluster.run_until(5 * kMs, [&] {
                return cluster.core(leader).commit().index >= config &&
                       cluster.core(leader).commit() == cluster.core(leader).end();
            }))
            continue;
        // Where in the leader's log it stands.
        std::optional<Position> at;
        const core::Core& core = cluster.core(leader);
        log::Point point{{}, {}, core.genesis(), {}, 0};
        while (const auto entry = log::next_entry(core.ring(), point, log::kNoLimit)) {
            point = entry->end;
            if (entry->end.index == config) at = entry->start;
        }
        if (!at) continue;
        cluster.network().drop_held(Kind::piece, leader, follower);
        cluster.network().release(Kind::piece, leader, follower);
        cluster.crash(leader);
        cluster.crash(lost);
        const Position first{at->value & ~std::uint64_t{16 * 1024 - 1}};
        cluster.disk(leader).flip_bit(log::segment_name(1, first), log::kSegmentDataOffset + (*at - first) + 50, 3);
        cluster.network().heal_all();
        try {
            cluster.restart(leader);
        } catch (const std::exception&) {
            continue;  // it was not in the last batch
        }
        if (!cluster.alive(leader) || cluster.core(leader).loss() != core::Loss::suspect) continue;
        ++tried;
        // The third has what was acknowledged: nobody may go on without it.
        const auto led = cluster.run_until(3'000 * kMs, [&] { return cluster.leader().has_value(); });
        EXPECT_FALSE(led) << cluster.describe();
        cluster.restart(lost);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(tried, 0);
}

// A newcomer promised more than the leader's ballot, to a candidate (itself) that knew a config which was then lost. It
// refuses the leader, who thinks that a learner is not one to be won.
TEST_F(MembershipFound, a_learner_that_has_promised_more_is_taken_in_all_the_same) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::durable, seed));
        const auto [leader, lost, follower] = lose_one(cluster);
        const auto removed = [&] { return voters_in_ring(cluster, follower) == 2; };
        if (!cluster.run_until(5'000 * kMs, removed)) continue;
        cluster.network().hold(Kind::piece, leader, follower);
        const auto appended = [&] { return voters_in_ring(cluster, leader) == 3; };
        if (!cluster.run_until(50 * kMs, appended)) continue;
        cluster.disk(leader).hang(true);
        if (!cluster.run_until(kMs, [&] { return voters_in_ring(cluster, lost) == 3; })) continue;
        cluster.crash(leader, true);  // it had told only the newcomer
        cluster.disk(leader).hang(false);
        cluster.network().drop_held(Kind::piece, leader, follower);
        cluster.network().release(Kind::piece, leader, follower);
        const Ballot before = cluster.core(follower).promised();
        // The newcomer campaigns; nobody hears of it.
        if (!cluster.run_until(2'000 * kMs, [&] { return cluster.core(lost).elections_started() > 0; })) continue;
        part(cluster, lost, follower);
        if (!cluster.run_until(50 * kMs, [&] { return cluster.core(lost).promised() > before; })) continue;
        if (cluster.core(follower).promised() != before) continue;
        cluster.restart(leader);
        part(cluster, lost, leader);
        if (!cluster.alive(leader)) continue;
        if (!cluster.run_until(5'000 * kMs, [&] { return cluster.leader().has_value(); })) continue;
        if (cluster.core(*cluster.leader()).promised() > cluster.core(lost).promised()) continue;
        cluster.run_for(500 * kMs);  // its campaign is over
        ++tried;
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
    }
    EXPECT_GT(tried, 0);
}

// A life that was taken out comes back with its disk, campaigns before it has heard of that, and hears of it while its
// promise to itself is on its way to the disk.
TEST_F(MembershipFound, one_that_was_taken_out_hears_of_it_while_it_campaigns) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::durable, seed));
        const auto [leader, old, other] = lose_one(cluster);
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        if (cluster.leader() != leader) continue;
        cluster.crash(old);
        cluster.put_disk_back(old, 0);
        // What the leader writes is on its way; nobody hears it meanwhile.
        auto& network = cluster.network();
        network.hold(Kind::piece, leader, old);
        cluster.restart(old);
        const auto opened = [&] { return cluster.core(leader).lane_to(old).state == core::Lane::State::open; };
        if (!cluster.run_until(300 * kMs, opened)) continue;
        cluster.run_for(kMs / 2);
        network.hold(Kind::read, leader, old);
        network.hold(Kind::read, leader, other);
        if (!cluster.run_until(400 * kMs, [&] { return cluster.core(old).elections_started() > 0; })) continue;
        cluster.disk(old).hang(true);
        network.release(Kind::piece, leader, old);
        const core::Voter self{old, cluster.incarnation(old)};
        const auto told = [&] { return !cluster.core(old).newest_config().config.names(self); };
        cluster.run_until(kMs, told);
        const Ballot before = cluster.core(old).promised();
        cluster.disk(old).hang(false);
        if (!told()) continue;
        if (!cluster.run_until(5 * kMs, [&] { return cluster.core(old).promised() > before; })) continue;
        cluster.propose(leader);  // one more than it knows, before its prepare comes
        ++tried;
        for (const Kind kind : {Kind::read, Kind::piece})
            for (const ReplicaId from : members(cluster))
                for (const ReplicaId to : members(cluster))
                    if (from != to) network.release(kind, from, to);
        ASSERT_NO_FATAL_FAILURE(is_whole_again(cluster));
    }
    EXPECT_GT(tried, 0);
}

// All began, and nobody has promised anything yet: the one that formed loses its disk, and is started to form again.
TEST_F(MembershipFound, a_former_without_its_disk_does_not_form_another_cluster) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(Durability::durable, seed));
        cluster.start_all();
        const ReplicaId former{1};
        if (!cluster.run_until(5'000 * kMs, [&] { return cluster.alive(former) && !cluster.core(former).forming(); }))
            continue;
        if (cluster.core({2}).promised() || cluster.core({3}).promised()) continue;
        ++tried;
        part(cluster, {2}, {3});
        cluster.crash(former);
        cluster.lose_disk(former);
        cluster.start(former);
        cluster.run_for(200 * kMs);
        cluster.network().heal_all();
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
    }
    EXPECT_GT(tried, 0);
}

// As in membership_test, and harsher: disks that seemed lost come back, memory of dead processes goes on answering,
// pauses, messages and writes that are held, torn writes, slow applies, snapshots.
class Anything {
 public:
    explicit Anything(std::uint64_t seed) : random_(seed * 7919), cluster_(draw(seed)) {}

    Cluster& cluster() { return cluster_; }
    void begin() {
        asides_ = durable_ && cluster_.replicas() > 2 && random_.below(2) == 0;  // then nothing is lost
        auto& faults = cluster_.network().faults();
        const auto some = [&](std::uint64_t most) { return random_.below(2) == 0 ? 0 : random_.below(most); };
        faults.message_lost_chance = some(100'000);
        faults.message_repeated_chance = some(100'000);
        faults.repeated_late_ns = 50 * kMs;
        faults.lane_breaks_chance = some(20'000);
        faults.completion_lost_chance = some(10'000);
        faults.piece_bytes = random_.below(2) == 0 ? 0 : 64 + random_.below(1000);
        faults.slow_chance = some(50'000);
        faults.slow_ns = 5 * kMs;
        faults.read_torn_chance = some(50'000);
        faults.read_fails_chance = some(50'000);
        faults.read_slow_chance = some(50'000);
        faults.read_slow_ns = 5 * kMs;
        faults.fence_slow_chance = some(200'000);
        faults.apply_slow_chance = some(50'000);
        faults.apply_slow_ns = 20 * kMs;
        longest_ns_ = random_.below(2) == 0 ? 20 * kMs : 150 * kMs;
    }
    void step() {
        look();
        switch (random_.below(14)) {
            case 0:
            case 1:
                lose(any());
                break;
            case 2:
                if (const ReplicaId one = any(); durable_ && cluster_.alive(one)) {
                    cluster_.crash(one, random_.below(2) == 0 && (asides_ || may_crash(cluster_, one)));
                    cluster_.restart(one);
                }
                break;
            case 3:
            case 4:
                between(any(), any(), false);
                break;
            case 5:
            case 6:
                heal(true);
                break;
            case 7:
                if (const ReplicaId one = any(); cluster_.alive(one)) cluster_.hang(one, random_.below(200 * kMs));
                break;
            case 8:
                if (const ReplicaId one = any(); cluster_.alive(one)) {
                    if (cluster_.paused(one)) cluster_.resume(one);
                    else cluster_.pause(one);
                }
                break;
            case 9:
                between(any(), any(), true);
                break;
            case 10:
                if (const ReplicaId one = any(); durable_ && cluster_.alive(one))
                    cluster_.disk(one).hang(!cluster_.disk(one).hung());
                break;
            default:
                for (std::uint64_t n = random_.below(40); n > 0 && cluster_.leader(); --n)
                    cluster_.propose(*cluster_.leader(), 16 + random_.below(400));
        }
        cluster_.run_for(random_.below(random_.below(2) == 0 ? 2 * kMs : longest_ns_));
    }
    // Nothing is in the way any more, and all are there; of those whose disks are aside the life that votes.
    void settle() {
        look();
        cluster_.run_for(300 * kMs);  // nobody lingers
        look();
        cluster_.network().faults() = {};
        heal(false);
        for (std::uint8_t i = 1; i <= cluster_.replicas(); ++i) {
            const ReplicaId id{i};
            if (cluster_.alive(id) && cluster_.paused(id)) cluster_.resume(id);
            if (cluster_.alive(id) && durable_) cluster_.disk(id).hang(false);
            if (asides_) put_back_who_votes(id);
            if (!cluster_.alive(id)) cluster_.restart(id);
            if (cluster_.alive(id) && durable_) cluster_.disk(id).hang(false);
        }
    }

 private:
    struct Held {
        Kind kind;
        ReplicaId from;
        ReplicaId to;
        friend bool operator==(const Held&, const Held&) = default;
    };

    Cluster::Options draw(std::uint64_t seed) {
        durable_ = random_.below(4) != 0;
        Cluster::Options options;
        options.seed = seed;
        options.durability = durable_ ? Durability::durable : Durability::memory;
        options.snapshot_after = {.bytes = random_.below(2) == 0 ? 0 : 20'000 + random_.below(60'000)};
        options.replicas = 2 + random_.below(4);
        return options;
    }
    ReplicaId any() { return ReplicaId{static_cast<std::uint8_t>(1 + random_.below(cluster_.replicas()))}; }
    void look() {
        for (const ReplicaId id : cluster_.ids()) {
            const core::ConfigAt& one = cluster_.core(id).committed_config();
            if (one.config.voters.size() != 0 && one.at >= newest_.at) newest_ = one;
        }
    }
    void lose(ReplicaId one) {
        if (!cluster_.alive(one)) {
            if (!cluster_.lingers(one)) cluster_.restart(one);
            return;
        }
        if (asides_) {
            cluster_.crash(one, random_.below(2) == 0);
            const auto aside = cluster_.disks_aside(one);
            if (!aside.empty() && random_.below(2) == 0) cluster_.put_disk_back(one, random_.below(aside.size()));
            else cluster_.put_disk_aside(one);
        } else if (!may_crash(cluster_, one)) {
            return;
        } else if (!durable_ && random_.below(3) == 0) {  // not in durable mode: a disk has one user
            if (cluster_.lingers(one)) return;
            cluster_.crash_lingering(one, random_.below(300 * kMs), random_.below(2) == 0);
        } else {
            cluster_.crash(one, random_.below(2) == 0);
            if (durable_) cluster_.lose_disk(one);
        }
        if (random_.below(4) != 0 && !cluster_.lingers(one)) cluster_.restart(one);
    }
    void between(ReplicaId one, ReplicaId other, bool holds) {
        if (one == other) return;
        if (!holds) {
            if (cluster_.alive(one) && cluster_.alive(other)) cluster_.network().cut(one, other);
            return;
        }
        constexpr std::array kKinds{Kind::message, Kind::piece, Kind::completion, Kind::read, Kind::report};
        const Held held{kKinds[random_.below(kKinds.size())], one, other};
        if (std::ranges::find(held_, held) != held_.end()) return;
        cluster_.network().hold(held.kind, held.from, held.to);
        held_.push_back(held);
    }
    void heal(bool may_drop) {
        cluster_.network().heal_all();
        for (const Held& held : held_) {
            if (may_drop && random_.below(2) == 0) cluster_.network().drop_held(held.kind, held.from, held.to);
            cluster_.network().release(held.kind, held.from, held.to);
        }
        held_.clear();
    }
    void put_back_who_votes(ReplicaId id) {
        const auto aside = cluster_.disks_aside(id);
        for (std::size_t i = 0; i < aside.size(); ++i) {
            if (!aside[i] || !newest_.config.names({id, aside[i]})) continue;
            if (cluster_.alive(id)) cluster_.crash(id);
            return cluster_.put_disk_back(id, i);
        }
    }

    core::Random random_;
    bool durable_ = false;
    Cluster cluster_;
    bool asides_ = false;
    std::uint64_t longest_ns_ = 0;
    std::vector<Held> held_;
    core::ConfigAt newest_;
};

// Found before: a newcomer that is taken in where another voter is lost, and is lost itself at that moment (2 of 4 were
// left for good, where it had been 2 of 3); a ring given up below what the config with the newcomer needs.
TEST_F(MembershipFound, anything_at_any_moment) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const TellsSeed tells{seed};
        Anything anything(seed);
        Cluster& cluster = anything.cluster();
        form(cluster);
        anything.begin();
        for (int step = 0; step < 200; ++step) anything.step();
        anything.settle();
        ASSERT_NO_FATAL_FAILURE(is_whole_again(cluster));
    }
}

}  // namespace
}  // namespace lockstep::sim
