#include "tools/bench/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::bench {
namespace {

TEST(Histogram, percentiles_are_near_those_of_the_sorted_values) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> latencies(10, 2);
    Histogram histogram;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 100'000; ++i) {
        values.push_back(static_cast<std::uint64_t>(latencies(random)));
        histogram.record(values.back());
    }
    std::ranges::sort(values);
    for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
        const auto exact = static_cast<double>(values[rank - 1]);
        EXPECT_NEAR(static_cast<double>(histogram.at(fraction)), exact, exact / 128 + 1) << fraction;
    }
}

TEST(Histogram, small_values_are_exact) {
    for (std::uint64_t value = 0; value < 256; ++value) {
        Histogram histogram;
        histogram.record(value);
        EXPECT_EQ(histogram.at(0.5), value);
    }
}

TEST(Histogram, largest_value_has_a_place) {
    Histogram histogram;
    histogram.record(std::numeric_limits<std::uint64_t>::max());
    EXPECT_GT(histogram.at(1), std::numeric_limits<std::uint64_t>::max() / 128 * 127);
}

TEST(Histogram, empty_one_says_zero) { EXPECT_EQ(Histogram().at(0.99), 0u); }

TEST(Histogram, sum_holds_the_values_of_both) {
    Histogram low;
    Histogram high;
    for (int i = 0; i < 100; ++i) {
        low.record(10);
        high.record(100);
    }
    low.add(high);
    EXPECT_EQ(low.total(), 200u);
    EXPECT_EQ(low.at(0.5), 10u);
    EXPECT_EQ(low.at(0.51), 100u);
    low.clear();
    EXPECT_EQ(low.total(), 0u);
}

}  // namespace
}  // namespace lockstep::bench
