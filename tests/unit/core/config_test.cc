// Who votes, and what a majority is: known bug 6 (openraft 1802, hashicorp/raft 163a55f) for every size, even ones too,
// simple and joint.
#include "consensus/core/config.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>  // needs the two before

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace lockstep::core {
namespace {

// One value per replica id.
using Values = std::map<std::uint8_t, std::uint64_t>;

VoterSet set_of(std::size_t count, std::mt19937_64& random) {
    VoterSet set;
    while (set.size() < count) set.add({{static_cast<std::uint8_t>(1 + random() % 9)}, {random() | 1}});
    return set;
}

// The values of a set from the highest down; the place of the last one of a majority, by counting up.
std::uint64_t naive_reached(const VoterSet& set, const Values& values) {
    std::vector<std::uint64_t> sorted;
    for (const Voter& voter : set.all()) sorted.push_back(values.at(voter.id.value));
    std::ranges::sort(sorted, std::greater<>());
    std::size_t enough = 1;
    while (2 * enough <= sorted.size()) ++enough;
    return sorted[enough - 1];
}

std::uint64_t naive_reached(const Config& config, const Values& values) {
    const std::uint64_t first = naive_reached(config.voters, values);
    return config.joint() ? std::min(first, naive_reached(config.next, values)) : first;
}

Config any_config(std::mt19937_64& random) {
    Config config{set_of(1 + random() % kMaxReplicas, random), {}};
    if (random() % 2 == 0) config.next = set_of(1 + random() % kMaxReplicas, random);
    return config;
}

Values any_values(std::mt19937_64& random) {
    Values values;
    const std::uint64_t most = 1 + random() % 20;  // small: equal ones are frequent
    for (std::uint8_t id = 1; id <= 9; ++id) values[id] = random() % most;
    return values;
}

std::uint64_t reached(const Config& config, const Values& values) {
    return majority_reached<std::uint64_t>(config, [&](const Voter& voter) { return values.at(voter.id.value); });
}

RC_GTEST_PROP(Quorum, majority_reached_equals_a_naive_sort, ()) {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    for (int count = 0; count < 100; ++count) {
        const Config config = any_config(random);
        const Values values = any_values(random);
        RC_ASSERT(reached(config, values) == naive_reached(config, values));
    }
}

RC_GTEST_PROP(Quorum, majority_reached_never_falls_while_acknowledgements_rise, ()) {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    const Config config = any_config(random);
    Values values = any_values(random);
    std::uint64_t before = reached(config, values);
    for (int count = 0; count < 200; ++count) {
        values[static_cast<std::uint8_t>(1 + random() % 9)] += random() % 3;
        const std::uint64_t now = reached(config, values);
        RC_ASSERT(now >= before);
        RC_ASSERT(now == naive_reached(config, values));
        before = now;
    }
}

// A value is reached exactly if those at or above it are a majority: the two ways of asking agree.
RC_GTEST_PROP(Quorum, has_majority_agrees_with_majority_reached, ()) {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    for (int count = 0; count < 100; ++count) {
        const Config config = any_config(random);
        const Values values = any_values(random);
        const std::uint64_t value = random() % 20;
        const bool enough = has_majority(config, [&](const Voter& v) { return values.at(v.id.value) >= value; });
        RC_ASSERT(enough == (reached(config, values) >= value));
    }
}

TEST(Quorum, majority_is_more_than_half_at_every_size) {
    for (std::size_t voters = 1; voters <= kMaxReplicas; ++voters) {
        EXPECT_GT(2 * majority(voters), voters);
        EXPECT_LE(2 * (majority(voters) - 1), voters);
    }
    EXPECT_EQ(majority(2), 2u);
    EXPECT_EQ(majority(4), 3u);
    EXPECT_EQ(majority(6), 4u);
}

TEST(Quorum, of_every_set_of_yes_sayers_is_by_count) {
    std::mt19937_64 random(1);
    for (std::size_t voters = 1; voters <= kMaxReplicas; ++voters) {
        const Config config{set_of(voters, random), {}};
        for (unsigned yes = 0; yes < 1u << voters; ++yes) {
            const auto says = [&](const Voter& voter) { return (yes >> *config.voters.find(voter) & 1) != 0; };
            EXPECT_EQ(has_majority(config, says), 2 * static_cast<std::size_t>(std::popcount(yes)) > voters);
        }
    }
}

TEST(Quorum, of_a_joint_config_needs_both_halves) {
    Config config;
    for (std::uint8_t id : {1, 2, 3}) config.voters.add({{id}, {1}});
    for (std::uint8_t id : {3, 4, 5}) config.next.add({{id}, {1}});
    const auto yes = [&](std::vector<std::uint8_t> ids) {
        return has_majority(config, [&](const Voter& voter) { return std::ranges::count(ids, voter.id.value) != 0; });
    };
    EXPECT_FALSE(yes({1, 2}));
    EXPECT_FALSE(yes({4, 5}));
    EXPECT_FALSE(yes({1, 2, 4}));
    EXPECT_TRUE(yes({1, 2, 4, 5}));
    EXPECT_FALSE(yes({1, 3}));
    EXPECT_TRUE(yes({1, 3, 4}));
}

TEST(Quorum, of_an_empty_config_is_never_there) {
    EXPECT_FALSE(has_majority(Config{}, [](const Voter&) { return true; }));
}

// S12: the pair votes. The same id in another incarnation is somebody else.
TEST(Quorum, counts_a_voter_that_changed_its_incarnation_in_a_joint_config_as_two) {
    Config config;
    config.voters.add({{1}, {100}});
    config.next.add({{1}, {200}});
    EXPECT_FALSE(has_majority(config, [](const Voter& voter) { return voter == Voter{{1}, {100}}; }));
    EXPECT_TRUE(config.names({{1}, {100}}));
    EXPECT_TRUE(config.names({{1}, {200}}));
    EXPECT_FALSE(config.names({{1}, {300}}));
}

TEST(VoterSet, takes_an_id_once_and_no_more_than_the_limit) {
    VoterSet set;
    EXPECT_TRUE(set.add({{7}, {1}}));
    EXPECT_FALSE(set.add({{7}, {1}}));
    EXPECT_FALSE(set.add({{7}, {2}}));
    for (std::uint8_t id = 100; set.size() < kMaxReplicas; ++id) EXPECT_TRUE(set.add({{id}, {1}}));
    EXPECT_FALSE(set.add({{200}, {1}}));
    EXPECT_EQ(set.size(), kMaxReplicas);
    EXPECT_EQ(set.all().size(), kMaxReplicas);
}

TEST(VoterSet, finds_the_pair_only) {
    VoterSet set;
    set.add({{3}, {30}});
    set.add({{1}, {10}});
    EXPECT_EQ(set.find({{3}, {30}}), 0u);
    EXPECT_EQ(set.find({{1}, {10}}), 1u);
    EXPECT_FALSE(set.find({{1}, {11}}));
    EXPECT_FALSE(set.find({{2}, {10}}));
    EXPECT_FALSE(VoterSet{}.find({}));
    EXPECT_TRUE(set.has({{1}, {10}}));
    EXPECT_FALSE(set.has({{1}, {30}}));
}

TEST(VoterSet, equal_sets_have_the_same_voters_in_the_same_places) {
    VoterSet set;
    VoterSet other;
    set.add({{1}, {10}});
    EXPECT_NE(set, other);
    other.add({{1}, {11}});
    EXPECT_NE(set, other);
    VoterSet same;
    same.add({{1}, {10}});
    EXPECT_EQ(set, same);
}

}  // namespace
}  // namespace lockstep::core
