// The load's book-keeping has to find what it is there to find.
#include "tools/counter/ledger.h"

#include <gtest/gtest.h>

namespace lockstep::counter {
namespace {

class LedgerTest : public testing::Test {
 protected:
    using us = std::chrono::microseconds;
    // An acknowledgement of an increment sent just now.
    void ack(std::int64_t value) { ledger_.acked(value, ledger_.floor(), start_, start_); }

    const Clock::time_point start_ = Clock::now();
    Ledger ledger_{100, start_};
};

TEST_F(LedgerTest, right_counts_are_right) {
    ack(101);
    ack(102);
    ledger_.unknown(2);
    ack(104);
    ledger_.finish(105);
    EXPECT_TRUE(ledger_.report().violations.empty());
    EXPECT_EQ(ledger_.report().acked, 3U);
}

TEST_F(LedgerTest, answers_on_several_connections_may_cross) {
    const auto floor = ledger_.floor();
    ledger_.acked(102, floor, start_, start_);
    ledger_.acked(101, floor, start_, start_);
    ledger_.finish(102);
    EXPECT_TRUE(ledger_.report().violations.empty());
}

TEST_F(LedgerTest, lost_increment_is_found) {
    ack(101);
    ack(102);
    ledger_.finish(101);
    EXPECT_FALSE(ledger_.report().violations.empty());
}

TEST_F(LedgerTest, doubled_increment_is_found) {
    ack(101);
    ledger_.unknown(1);
    ledger_.finish(103);
    EXPECT_EQ(ledger_.report().violations.size(), 1U);
}

TEST_F(LedgerTest, value_acknowledged_twice_is_found) {
    const auto floor = ledger_.floor();
    ledger_.acked(101, floor, start_, start_);
    ledger_.acked(101, floor, start_, start_);
    EXPECT_EQ(ledger_.report().violations.size(), 1U);
}

TEST_F(LedgerTest, value_from_the_past_is_found) {
    const auto floor = ledger_.floor();
    ledger_.acked(105, floor, start_, start_);
    ack(103);
    EXPECT_EQ(ledger_.report().violations.size(), 1U);
}

TEST_F(LedgerTest, value_that_cannot_be_is_found) {
    ack(std::int64_t{1} << 40);
    EXPECT_EQ(ledger_.report().violations.size(), 1U);
}

TEST_F(LedgerTest, gap_of_an_event_ends_with_the_first_answer_to_a_later_increment) {
    ledger_.event(start_ + us(100));
    ledger_.acked(101, 100, start_ + us(50), start_ + us(150));
    EXPECT_TRUE(ledger_.report().event_gaps_us.empty());
    ledger_.acked(102, 100, start_ + us(160), start_ + us(2100));
    ASSERT_EQ(ledger_.report().event_gaps_us.size(), 1U);
    EXPECT_EQ(ledger_.report().event_gaps_us[0], 2000U);
    EXPECT_EQ(ledger_.report().longest_gap_us, 1950U);
}

}  // namespace
}  // namespace lockstep::counter
