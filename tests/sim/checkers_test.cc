// The checkers are checked: each of them fails where it should, and only there.
#include "sim/history.h"

#include <gtest/gtest.h>

namespace lockstep::sim {
namespace {

constexpr ReplicaId r1{1};
constexpr ReplicaId r2{2};
constexpr Incarnation life{7};
constexpr Incarnation other_life{8};
constexpr Ballot first = Ballot::of(1, r1);
constexpr Ballot second = Ballot::of(2, r2);

class Checkers : public testing::Test {
 protected:
    static Outcome applied(std::uint64_t index) { return {Fate::applied, Reason::none, {}, {index}, {}}; }
    static Outcome ended(Fate fate) { return {fate, Reason::none, {}, {}, {}}; }
    History history_;
};

TEST_F(Checkers, one_leader_in_a_ballot) {
    history_.leads(r1, first);
    history_.leads(r1, first);
    history_.leads(r2, second);
    EXPECT_THROW(history_.leads(r2, first), Violation);
}

TEST_F(Checkers, nobody_leads_in_another_s_ballot) { EXPECT_THROW(history_.leads(r2, first), Violation); }

TEST_F(Checkers, one_writer_in_a_ring_and_ballot) {
    history_.wrote(r2, life, first, r1, life);
    history_.wrote(r2, life, first, r1, life);
    history_.wrote(r2, life, Ballot::of(3, r1), r1, other_life);
    EXPECT_THROW(history_.wrote(r2, life, first, r1, other_life), Violation);
    EXPECT_THROW(history_.wrote(r2, life, first, {3}, life), Violation);
}

TEST_F(Checkers, opens_are_answered_in_rising_order_each_with_one_lane) {
    history_.answered(r2, life, first, 1, "a");
    history_.answered(r2, life, first, 1, "a");
    history_.answered(r2, life, first, 3, "b");
    history_.answered(r2, life, second, 1, "c");
    history_.answered(r2, other_life, first, 1, "d");
    EXPECT_THROW(history_.answered(r2, life, first, 3, "e"), Violation);
    EXPECT_THROW(history_.answered(r2, life, first, 2, "f"), Violation);
    EXPECT_THROW(history_.answered(r2, life, first, 1, "a"), Violation);
}

TEST_F(Checkers, a_lane_is_connected_by_the_answer_to_the_newest_open) {
    history_.asked(r1, life, r2, 1);
    history_.answered(r2, life, first, 1, "a");
    history_.connected(r1, life, r2, "a");
    history_.asked(r1, life, r2, 2);
    EXPECT_THROW(history_.connected(r1, life, r2, "a"), Violation);
    EXPECT_THROW(history_.connected(r1, life, r2, "b"), Violation) << "nobody has opened it";
    history_.answered(r2, life, first, 2, "b");
    EXPECT_NO_THROW(history_.connected(r1, life, r2, "b"));
}

TEST_F(Checkers, a_leader_s_ring_reaches_back_to_the_commits_of_a_majority) {
    const std::vector<Position> commits{{900}, {500}, {100}};
    EXPECT_NO_THROW(history_.gave_up(r1, {500}, commits));
    EXPECT_THROW(history_.gave_up(r1, {501}, commits), Violation);
    const std::vector<Position> even{{900}, {500}, {500}, {100}};
    EXPECT_NO_THROW(history_.gave_up(r1, {500}, even));
    EXPECT_THROW(history_.gave_up(r1, {501}, even), Violation);
}

TEST_F(Checkers, memory_is_bounded) {
    EXPECT_NO_THROW(history_.holds(r1, "lanes", 2, 2));
    EXPECT_THROW(history_.holds(r1, "lanes", 3, 2), Violation);
}

TEST_F(Checkers, committed_entries_never_change) {
    history_.committed(r1, life, {5}, 50);
    history_.committed(r2, life, {5}, 50);
    EXPECT_THROW(history_.committed({3}, life, {5}, 51), Violation);
}

TEST_F(Checkers, a_commit_never_falls) {
    history_.committed(r1, life, {5}, 50);
    history_.committed(r1, other_life, {4}, 40);
    EXPECT_THROW(history_.committed(r1, life, {4}, 40), Violation);
}

TEST_F(Checkers, the_same_is_applied_everywhere) {
    history_.applied(r1, life, {1}, "1");
    history_.applied(r1, life, {2}, "2");
    history_.applied(r2, life, {1}, "1");
    EXPECT_THROW(history_.applied(r2, life, {2}, "3"), Violation);
}

TEST_F(Checkers, nothing_is_left_out_or_applied_twice) {
    history_.applied(r1, life, {1}, "1");
    history_.applied(r1, life, {2}, "2");
    EXPECT_THROW(history_.applied(r2, life, {2}, "2"), Violation);
    EXPECT_THROW(history_.applied(r1, life, {2}, "2"), Violation);
}

TEST_F(Checkers, states_are_equal_where_the_index_is) {
    history_.state(r1, {4}, 44);
    history_.state(r2, {4}, 44);
    EXPECT_THROW(history_.state(r2, {4}, 45), Violation);
}

TEST_F(Checkers, time_in_entries_never_goes_back_nor_jumps) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    history_.stamped({1}, first, 10 * second_ns, second_ns);
    history_.stamped({2}, first, 11 * second_ns, 2 * second_ns);
    EXPECT_THROW(history_.stamped({3}, first, 9 * second_ns, 2 * second_ns), Violation);
    EXPECT_THROW(history_.stamped({3}, first, 3600 * second_ns, 3 * second_ns), Violation);
    history_.stamped({3}, second, 3600 * second_ns, 3 * second_ns);  // another leader's clock
}

TEST_F(Checkers, messages_are_bounded) {
    const auto flood = [&](std::uint64_t each_ns) {
        for (std::uint64_t i = 0; i < 100'000; ++i) history_.sent(r1, i * each_ns);
    };
    EXPECT_NO_THROW(flood(100'000));
    EXPECT_THROW(flood(1'000), Violation);
}

TEST_F(Checkers, a_request_ends_once) {
    history_.proposed(1);
    history_.ended(1, applied(1));
    EXPECT_THROW(history_.ended(1, applied(1)), Violation);
    history_.read_ended(history_.read_began(), applied(1));
    EXPECT_THROW(history_.read_ended({}, applied(1)), Violation);
}

TEST_F(Checkers, a_read_sees_what_was_acknowledged) {
    history_.proposed(1);
    history_.ended(1, applied(9));
    const Index must_see = history_.read_began();
    EXPECT_THROW(history_.read_ended(must_see, applied(8)), Violation);
}

TEST_F(Checkers, an_acknowledged_proposal_is_there_once) {
    history_.proposed(1);
    history_.ended(1, applied(1));
    EXPECT_THROW(history_.check_complete(), Violation);
    history_.applied(r1, life, {1}, "1");
    EXPECT_NO_THROW(history_.check_complete());
    history_.applied(r1, life, {2}, "1");
    EXPECT_THROW(history_.check_complete(), Violation);
}

TEST_F(Checkers, an_acknowledged_proposal_is_where_it_was_said_to_be) {
    history_.proposed(1);
    history_.ended(1, applied(2));
    history_.applied(r1, life, {1}, "1");
    EXPECT_THROW(history_.check_complete(), Violation);
}

TEST_F(Checkers, a_rejected_proposal_is_not_there_and_an_unknown_one_may_be) {
    history_.proposed(1);
    history_.ended(1, ended(Fate::unknown));
    history_.applied(r1, life, {1}, "1");
    EXPECT_NO_THROW(history_.check_complete());
    history_.proposed(2);
    history_.ended(2, ended(Fate::rejected));
    history_.applied(r1, life, {2}, "2");
    EXPECT_THROW(history_.check_complete(), Violation);
}

}  // namespace
}  // namespace lockstep::sim
