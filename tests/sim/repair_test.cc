// A replica whose log has rotted where it was acknowledged (S14): it starts, counts for no election, takes what it
// lacks from its leader, and votes again; and where nobody has that any more, nobody goes on without it.
#include "tests/sim/catch_up.h"

#include "consensus/core/random.h"
#include "log/wal/format.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace lockstep::sim {
namespace {

class Repair : public CatchUp {
 protected:
    static constexpr std::uint64_t kRing = 16 * 1024;

    static Cluster::Options options(std::uint64_t seed, std::uint64_t snapshot_bytes = 0) {
        return CatchUp::options(Durability::durable, seed, {.bytes = snapshot_bytes});
    }
    static bool damaged(Cluster& cluster, ReplicaId id) {
        return cluster.alive(id) && cluster.core(id).loss() == core::Loss::corrupt;
    }
    // The laps that its log on disk has.
    static std::vector<log::FileName> segments(Cluster& cluster, ReplicaId id) {
        std::vector<log::FileName> names;
        const auto files = cluster.disk(id).list();
        for (const log::FileInfo& file : files.value())
            if (log::parse_segment_name(file.name)) names.push_back(file.name);
        return names;
    }
    // A bit of it turns over, in the bytes of the stream, in the lap that `which` says, while it does not run.
    static void flip(Cluster& cluster, ReplicaId id, std::size_t which, std::uint64_t at) {
        const auto names = segments(cluster, id);
        cluster.disk(id).flip_bit(names.at(which % names.size()), log::kSegmentDataOffset + at % kRing, 3);
    }
    // It is started with damage in a lap that is neither the first nor the last.
    static void rot_in_the_middle(Cluster& cluster, ReplicaId id, std::uint64_t at) {
        cluster.crash(id);
        flip(cluster, id, segments(cluster, id).size() / 2, at);
        cluster.restart(id);
    }
    static bool whole_again(Cluster& cluster, ReplicaId id) {
        return cluster.alive(id) && cluster.core(id).loss() == core::Loss::none && owed(cluster, id) == log::Owed{};
    }
    // What its disk says is lost.
    static log::Owed owed(Cluster& cluster, ReplicaId id) {
        auto hard = log::read_hard_state(cluster.disk(id));
        return hard && hard.value() ? hard.value()->state.owed : log::Owed{};
    }
    static void load(Cluster& cluster, core::Random& random) {
        for (std::uint64_t count = random.below(20); count > 0; --count) {
            const auto leader = cluster.leader();
            if (leader && cluster.driver(*leader).waiting_proposals() < 16) cluster.propose(*leader, random.below(400));
        }
    }
};

TEST_F(Repair, a_replica_with_rot_in_its_log_repairs_itself_and_votes_again) {
    std::size_t repaired = 0;
    for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(seeds(), 20); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        Cluster cluster(options(seed, seed % 3 == 0 ? 30'000 : 0));
        form(cluster);
        fill(cluster, 5);
        // A leader, too: then another one comes first.
        const ReplicaId victim = seed % 2 == 0 ? *cluster.leader() : other_than(*cluster.leader());
        rot_in_the_middle(cluster, victim, random.next());
        if (!damaged(cluster, victim)) continue;
        EXPECT_EQ(cluster.core(victim).role(), Role::learner);
        EXPECT_NE(cluster.driver(victim).status().note.find("repairs its log"), std::string::npos);
        for (int i = 0; i < 20; ++i) {
            load(cluster, random);
            cluster.run_for(random.below(5 * kMs));
            EXPECT_FALSE(damaged(cluster, victim) && cluster.leader() == victim);
        }
        ASSERT_TRUE(cluster.run_until(5'000 * kMs, [&] { return whole_again(cluster, victim); }))
            << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        EXPECT_EQ(cluster.core(victim).role() == Role::learner, false);
        // It is needed, and votes.
        cluster.crash(other_than(victim));
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        // Nothing is wrong when it starts again.
        cluster.crash(victim, true);
        cluster.restart(victim);
        EXPECT_EQ(cluster.core(victim).loss(), core::Loss::none);
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        cluster.history().check_complete();
        ++repaired;
    }
    EXPECT_GT(repaired, 8u);
}

// Committed by two, of which the one has rotted and the other is away; the third knows nothing of it. Nobody may go on,
// and what the damaged one still has stays, until the other is back.
TEST_F(Repair, a_damaged_only_copy_is_neither_counted_nor_given_up) {
    std::size_t tried = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        Cluster cluster(options(seed));
        form(cluster);
        ASSERT_TRUE(progresses(cluster));
        const ReplicaId leader = *cluster.leader();
        const ReplicaId behind = other_than(leader);
        const ReplicaId victim = other_than(behind);
        // By many rings, or by less than one, so that it could lead if the damaged one counted.
        const bool far = seed % 4 < 2;
        if (!far) fill(cluster, 3);
        ASSERT_TRUE(all_equal(cluster));
        cut_off(cluster, behind);
        if (far) fill(cluster, 3);
        for (int i = 0; i < 10; ++i) {
            const std::size_t acknowledged = cluster.history().acknowledged();
            ASSERT_TRUE(cluster.propose(leader, 100));
            ASSERT_TRUE(cluster.run_until(500 * kMs, [&] { return cluster.history().acknowledged() > acknowledged; }));
        }
        cluster.crash(victim);
        cluster.crash(leader);
        const std::size_t which = segments(cluster, victim).size() / 2;
        const std::uint64_t at = random.next();
        flip(cluster, victim, which, at);
        std::vector<std::vector<std::byte>> before;
        for (const log::FileName& name : segments(cluster, victim))
            before.push_back(cluster.disk(victim).contents(name));
        cluster.network().heal_all();
        cluster.restart(victim);
        if (!damaged(cluster, victim)) continue;
        ++tried;
        for (int starts = 0; starts < 3; ++starts) {
            const bool led = cluster.run_until(2'000 * kMs, [&] { return cluster.leader().has_value(); });
            ASSERT_FALSE(led) << "goes on without the only copy\n" << cluster.describe();
            cluster.crash(victim, true);
            cluster.restart(victim);
        }
        std::size_t number = 0;
        for (const log::FileName& name : segments(cluster, victim))
            EXPECT_EQ(cluster.disk(victim).contents(name), before.at(number++)) << name.view();
        if (seed % 2 == 0) {
            cluster.restart(leader);
        } else {
            // The disk was only read wrongly: it has all that there was.
            cluster.crash(victim);
            flip(cluster, victim, which, at);
            cluster.restart(victim);
            EXPECT_EQ(cluster.core(victim).loss(), core::Loss::none);
        }
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(cluster.run_until(5'000 * kMs, [&] { return whole_again(cluster, victim); }))
            << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(tried, 4u);
}

// Two of three, at different places. While a leader stands that has everything both are repaired; else all wait.
TEST_F(Repair, two_damaged_of_three_are_repaired_by_a_leader_that_stands_or_wait) {
    std::size_t repaired = 0;
    std::size_t waited = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        Cluster cluster(options(seed));
        form(cluster);
        fill(cluster, 5);
        ASSERT_TRUE(all_equal(cluster));
        const ReplicaId leader = *cluster.leader();
        const ReplicaId one = other_than(leader);
        const ReplicaId two = other_than(one);
        const bool stands = seed % 2 == 0;
        if (!stands) cluster.crash(leader);
        const std::uint64_t at = random.next();
        cluster.crash(one);
        cluster.crash(two);
        flip(cluster, one, 1, at);
        flip(cluster, two, 3, random.next());
        cluster.restart(one);
        cluster.restart(two);
        if (!damaged(cluster, one) || !damaged(cluster, two)) continue;
        if (!stands) {
            cluster.restart(leader);
            const bool led = cluster.run_until(2'000 * kMs, [&] { return cluster.leader().has_value(); });
            EXPECT_FALSE(led) << cluster.describe();
            ++waited;
            cluster.crash(one);
            flip(cluster, one, 1, at);  // an operator has brought the bytes back
            cluster.restart(one);
        } else {
            ++repaired;
        }
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(cluster.run_until(10'000 * kMs, [&] {
            return whole_again(cluster, one) && whole_again(cluster, two);
        })) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(repaired, 2u);
    EXPECT_GT(waited, 2u);
}

// What rots below the newest snapshot is in that snapshot: the log goes on from there.
TEST_F(Repair, rot_below_a_snapshot_costs_nothing) {
    std::size_t below = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Cluster cluster(options(seed, 30'000));
        form(cluster);
        fill(cluster, 8);
        ASSERT_TRUE(all_equal(cluster));
        cluster.run_for(100 * kMs);
        const ReplicaId victim = other_than(*cluster.leader());
        const Index snapshot = cluster.driver(victim).status().snapshot;
        ASSERT_GT(snapshot.value, 0u);
        cluster.crash(victim);
        flip(cluster, victim, 0, 10);  // the first entry of the first lap that is there
        cluster.restart(victim);
        if (cluster.core(victim).loss() == core::Loss::none) {
            ++below;
            EXPECT_GE(cluster.core(victim).commit().index, snapshot);
        }
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(cluster.run_until(10'000 * kMs, [&] { return whole_again(cluster, victim); }))
            << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.crash(other_than(victim));
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(below, 4u);
}

// One replica rots, again and again, and it and the others are killed and lose power at any moment of its repair.
TEST_F(Repair, any_crash_and_any_change_of_leader_in_the_middle_is_overcome) {
    std::size_t found = 0;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        core::Random random(seed);
        Cluster::Options chosen = options(seed, random.below(2) == 0 ? 0 : 10'000 + random.below(60'000));
        if (random.below(3) == 0) chosen.replicas = 5;
        Cluster cluster(chosen);
        if (random.below(2) == 0) disturb(cluster.network().faults(), random);
        form(cluster);
        fill(cluster, 2 + random.below(5));
        const ReplicaId victim{static_cast<std::uint8_t>(1 + random.below(chosen.replicas))};
        for (int act = 0; act < 60; ++act) {
            const ReplicaId id{static_cast<std::uint8_t>(1 + random.below(chosen.replicas))};
            switch (random.below(8)) {
                case 0:
                    // Only where another minority is whole: all else may rightly wait for ever.
                    if (cluster.alive(victim)) cluster.crash(victim, random.below(2) == 0);
                    if (random.below(2) == 0 && !segments(cluster, victim).empty())
                        flip(cluster, victim, random.next(), random.next());
                    break;
                case 1:
                    if (cluster.alive(id)) cluster.crash(id, id == victim && random.below(2) == 0);
                    break;
                case 2:
                    if (const auto leader = cluster.leader(); leader && random.below(3) == 0) cluster.crash(*leader);
                    break;
                case 3:
                case 4:
                    for (const ReplicaId one : {victim, id})
                        if (!cluster.alive(one)) cluster.restart(one);
                    break;
                default:
                    load(cluster, random);
            }
            found += damaged(cluster, victim) ? 1 : 0;
            cluster.run_for(random.below(random.below(4) == 0 ? 150 * kMs : 3 * kMs));
            const auto leader = cluster.leader();
            ASSERT_FALSE(leader && damaged(cluster, *leader)) << cluster.describe();
        }
        cluster.network().faults() = {};
        for (std::uint8_t id = 1; id <= chosen.replicas; ++id)
            if (!cluster.alive(ReplicaId{id})) cluster.restart(ReplicaId{id});
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        ASSERT_TRUE(cluster.run_until(5'000 * kMs, [&] { return whole_again(cluster, victim); }))
            << cluster.describe();
        cluster.history().check_complete();
    }
    EXPECT_GT(found, seeds());
}

}  // namespace
}  // namespace lockstep::sim
