// The simulator is checked: each known bug, planted, must be found within its number of seeds.
#include "sim/apart.h"
#include "sim/draw.h"
#include "sim/planted/bugs.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

namespace lockstep::sim {
namespace {

constexpr std::chrono::seconds kLimit{30};  // of real time, for a run that takes well below one

// Where the search begins, for those that take minutes to come by from the first seed: a little before the seed that
// found it last. All others up to the bound are still looked at, should that one find it no more.
std::uint64_t first_seed(PlantedBug bug) {
    switch (bug) {
        case PlantedBug::adoption_unverified: return 135;
        case PlantedBug::adoption_into_own_ring: return 90;
        case PlantedBug::adoption_impossible_retried: return 100;
        case PlantedBug::adoption_clears_own_tail: return 470;
        case PlantedBug::older_answer_believed: return 248;
        case PlantedBug::no_op_before_majority: return 2450;
        default: return 1;
    }
}

class Planted : public testing::TestWithParam<Bug> {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }
    void TearDown() override { planted_bug = PlantedBug::none; }
};

TEST_P(Planted, is_found) {
    planted_bug = GetParam().bug;
    for (std::uint64_t looked = 0; looked < GetParam().seeds; ++looked) {
        const std::uint64_t seed = (first_seed(GetParam().bug) - 1 + looked) % GetParam().seeds + 1;
        const RunResult result = run_apart(GetParam().durable ? draw_durable(seed) : draw(seed), kLimit);
        if (result.failure == Failure::none) continue;
        std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(seed), to_string(result.failure),
                    result.what.substr(0, result.what.find('\n')).c_str());
        return;
    }
    FAIL() << GetParam().what << ": not found in " << GetParam().seeds << " seeds";
}

// The others are found by cases of their own: planted.* in CMakeLists.txt.
std::vector<Bug> found_by_seeds() {
    std::vector<Bug> found;
    std::ranges::copy_if(bugs(), std::back_inserter(found), [](const Bug& bug) { return bug.seeds != 0; });
    return found;
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(found_by_seeds()),
                         [](const auto& tested) { return tested.param.name; });

TEST(PlantedNothing, is_not_found) {
    spdlog::set_level(spdlog::level::off);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_EQ(run_apart(draw(seed), kLimit).failure, Failure::none) << "seed " << seed;
        EXPECT_EQ(run_apart(draw_durable(seed), kLimit).failure, Failure::none) << "durable, seed " << seed;
    }
}

TEST(PlantedBugs, have_a_line_each) {
    // The list's last one stands for all: the enumeration has no gaps.
    EXPECT_EQ(bugs().size(), static_cast<std::size_t>(PlantedBug::stopped_and_writable));
    for (std::size_t at = 0; at < bugs().size(); ++at)
        EXPECT_EQ(static_cast<std::size_t>(bugs()[at].bug), at + 1) << bugs()[at].name;
}

}  // namespace
}  // namespace lockstep::sim
