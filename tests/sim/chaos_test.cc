// Random runs by seed. A seed that once found a fault stays here for ever, under the name of what it found.
#include "sim/draw.h"
#include "sim/run.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace lockstep::sim {
namespace {

// Each test runs this many seeds; LOCKSTEP_SIM_SEEDS asks for more or fewer.
std::uint64_t seeds_per_test() {
    const char* asked = std::getenv("LOCKSTEP_SIM_SEEDS");
    return asked == nullptr ? 250 : std::strtoull(asked, nullptr, 10);
}

class Chaos : public testing::TestWithParam<std::uint64_t> {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }
};

void keeps_every_rule_and_recovers(std::uint64_t first_seed, std::uint64_t seeds, Case (*drawn)(std::uint64_t,
                                                                                               std::size_t)) {
    std::uint64_t acknowledged = 0;
    std::uint64_t elections = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        const RunResult result = run(drawn(seed, 0));
        ASSERT_EQ(result.failure, Failure::none) << "seed " << seed << ": " << result.what;
        ASSERT_EQ(result.undecided, 0u) << "seed " << seed;
        acknowledged += result.acknowledged;
        elections += result.elections;
    }
    // The runs were runs: entries were committed, and leaders lost.
    EXPECT_GT(acknowledged, seeds * 10);
    EXPECT_GT(elections, seeds);
}

TEST_P(Chaos, keeps_every_rule_and_recovers) {
    keeps_every_rule_and_recovers(GetParam() * 1'000'000, seeds_per_test(), draw);
}

// These take longer: power is lost, and logs are read back.
TEST_P(Chaos, keeps_every_rule_and_recovers_on_disk) {
    keeps_every_rule_and_recovers(GetParam() * 1'000'000, seeds_per_test() / 4, draw_durable);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range<std::uint64_t>(1, 9));

TEST(ChaosRun, same_seed_same_hash) {
    spdlog::set_level(spdlog::level::off);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const RunResult first = run(draw(seed));
        const RunResult second = run(draw(seed));
        EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
        EXPECT_NE(first.hash, 0u);
    }
    EXPECT_NE(run(draw(1)).hash, run(draw(2)).hash);
    EXPECT_EQ(run(draw_durable(1)).hash, run(draw_durable(1)).hash);
    EXPECT_NE(run(draw_durable(1)).hash, run(draw_durable(2)).hash);
}

}  // namespace
}  // namespace lockstep::sim
