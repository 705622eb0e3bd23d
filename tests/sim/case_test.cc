// Cases: drawn, written down, read again, run again, made smaller.
#include "sim/apart.h"
#include "sim/case.h"
#include "sim/draw.h"
#include "sim/shrink.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace lockstep::sim {
namespace {

constexpr std::chrono::seconds kLimit{30};

class Cases : public testing::Test {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }
    static std::string error_of(const std::string& text) {
        const auto read = read_case(text);
        return read ? "none" : read.error().message();
    }
    // Breaks the fence: a fault of the fabric that has to be found.
    static Case leaking(std::uint64_t seed) {
        Case drawn = draw(seed);
        drawn.faults.fence_leaks_chance = 1'000'000;
        return drawn;
    }
};

TEST_F(Cases, text_is_read_again_as_it_was_and_runs_the_same) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Case drawn = draw(seed);
        const auto read = read_case(drawn.text());
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_EQ(read.value().text(), drawn.text());
        EXPECT_EQ(read.value().actions, drawn.actions);
        EXPECT_EQ(run(read.value()).hash, run(drawn).hash);
    }
}

TEST_F(Cases, wrong_text_is_refused_and_says_where) {
    const std::string first = "lockstep-sim case 1\n";
    EXPECT_EQ(error_of(""), "line 1: not a case of lockstep-sim: expected \"lockstep-sim case 1\"");
    EXPECT_EQ(error_of(first + "# a comment\n\nfly r1\n"), "line 4: \"fly\" is no setting, no fault and no action");
    EXPECT_EQ(error_of(first + "replicas 9\n"), "line 2: expected \"replicas\" and a number from 1 to 7");
    EXPECT_EQ(error_of(first + "pause\n"),
              "line 2: expected \"pause WHO\", WHO being r1 to r7, leader or marked");
    EXPECT_EQ(error_of(first + "run -1\n"), "line 2: \"-1\" is no number from 0 to 3600000000000");
    EXPECT_EQ(error_of(first + "ring 5000\n"), "ring 5000 is no power of two");
    EXPECT_EQ(error_of(first + "pause r4\n"), "\"pause r4\" names a replica that is not there: there are 3");
    EXPECT_EQ(error_of(first + "slow_chance 1000001\n"),
              "line 2: expected \"slow_chance\" and a number from 0 to 1000000");
}

TEST_F(Cases, the_same_run_apart_ends_the_same) {
    const RunResult here = run(draw(3));
    const RunResult apart = run_apart(draw(3), kLimit);
    EXPECT_EQ(apart.failure, Failure::none);
    EXPECT_EQ(apart.hash, here.hash);
    EXPECT_EQ(apart.acknowledged, here.acknowledged);
    EXPECT_EQ(apart.virtual_ns, here.virtual_ns);
}

TEST_F(Cases, a_leaking_fence_is_found_and_made_small) {
    std::uint64_t seed = 1;
    RunResult failure;
    for (; seed <= 200 && failure.failure == Failure::none; ++seed) failure = run_apart(leaking(seed), kLimit);
    ASSERT_EQ(failure.failure, Failure::safety);
    const Case found = leaking(seed - 1);
    const Shrunk shrunk = shrink(found, failure, std::chrono::seconds(20), nullptr);
    EXPECT_LT(shrunk.smaller.actions.size(), found.actions.size() / 2);
    EXPECT_TRUE(same_failure(shrunk.failure, failure)) << shrunk.failure.what;
    EXPECT_TRUE(same_failure(run_apart(shrunk.smaller, kLimit), failure));
}

TEST_F(Cases, a_run_that_does_not_end_is_given_up) {
    Case endless = draw(1);
    endless.actions.assign(100, {Act::run, {}, {}, 3'600'000'000'000, 0});
    const RunResult result = run_apart(endless, std::chrono::seconds(1));
    EXPECT_EQ(result.failure, Failure::no_progress);
    EXPECT_EQ(result.what, "the run does not end");
}

}  // namespace
}  // namespace lockstep::sim
