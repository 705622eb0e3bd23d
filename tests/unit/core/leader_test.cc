// A leader's lanes, its commit rule, its reads (S1, S6, S10, S11, S15, F5, F8).
#include "tests/unit/core/bench.h"

namespace lockstep::core {
namespace {

constexpr LaneId kLane2{1};  // the first lane to r2
constexpr LaneId kLane3{2};  // and to r3

// Leads, and its no-op has landed on r2.
void lead_with_no_op(Bench& bench) {
    bench.lead();
    bench.flush();
    bench.step(event::Landed{kLane2, 1});
    ASSERT_EQ(bench.core().commit().index, Index{1});
}

TEST(Leader, its_no_op_is_the_first_entry_and_commits_when_a_majority_holds_it) {
    Bench bench(kR1);
    bench.lead();
    EXPECT_EQ(bench.core().end().index, Index{1});
    EXPECT_EQ(bench.core().commit().index, Index{0});
    bench.flush();
    EXPECT_EQ(bench.effects<effect::PostWrite>().size(), 2u);
    bench.step(event::Landed{kLane3, 1});
    EXPECT_EQ(bench.core().commit().index, Index{1});
}

TEST(Leader, a_completion_of_an_ended_lane_counts_for_nothing) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    ASSERT_EQ(bench.propose("a"), Proposed::appended);
    bench.flush();
    bench.step(event::LaneBroken{kLane2});
    bench.step(event::Landed{kLane2, 2});
    EXPECT_EQ(bench.core().commit().index, Index{1});
    bench.step(event::Landed{kLane3, 2});
    EXPECT_EQ(bench.core().commit().index, Index{2}) << "the other lane goes on undisturbed";
}

TEST(Leader, reopens_a_broken_lane_in_its_ballot_and_takes_the_answer_to_the_newest_open_only) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    const Ballot ballot = bench.core().promised();
    bench.step(event::LaneBroken{kLane2});
    EXPECT_TRUE(bench.effects<effect::EndLane>().size() == 1 && bench.effects<effect::EndLane>()[0].lane == kLane2);
    bench.tick(1);
    ASSERT_EQ(bench.sent<Prepare>(kR2).size(), 1u);
    EXPECT_EQ(bench.sent<Prepare>(kR2)[0].ballot, ballot);
    EXPECT_EQ(bench.sent<Prepare>(kR2)[0].open_number, 2u);

    bench.receive(kR2, bench.promise(1));
    EXPECT_TRUE(bench.effects<effect::ConnectLane>().empty()) << "a repeat of the first answer";
    bench.receive(kR2, bench.promise(2));
    ASSERT_EQ(bench.effects<effect::ConnectLane>().size(), 1u);
    EXPECT_NE(bench.effects<effect::ConnectLane>()[0].lane, kLane2) << "a lane's name is never used twice";

    // Repaired from the follower's commit, whatever had been acknowledged before.
    EXPECT_EQ(bench.core().lane_to(kR2).landed.index, Index{0});
    bench.flush();
    ASSERT_EQ(bench.effects<effect::PostWrite>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::PostWrite>()[0].at, Position{0});
}

// Possible with five replicas: r2 promised late, and learned from boards what a newer ballot, without it, committed.
TEST(Leader, steps_down_for_a_follower_that_has_committed_more_than_the_leader_holds) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    bench.step(event::LaneBroken{kLane2});
    bench.tick(1);
    Promise ahead = bench.promise(2);
    ahead.last = ahead.commit = bench.core().end();
    ahead.commit.index.value += 1;
    ahead.commit.position = ahead.commit.position + 64;
    bench.receive(kR2, ahead);
    EXPECT_EQ(bench.core().role(), Role::follower);
    EXPECT_TRUE(bench.effects<effect::ConnectLane>().empty());
    EXPECT_EQ(bench.effects<effect::ProposalsLost>().size(), 1u);
}

// r2 and the leader apply and make room; r3 takes what it gets, and reports nothing: its space ends inside of what gets
// committed, and more than a lap of the ring is.
// Returns the end of what was written to r3.
Position leave_r3_behind(Bench& bench) {
    Position written;
    lead_with_no_op(bench);
    bench.step(event::Landed{kLane3, 1});
    std::uint64_t landed_on_2 = 1;
    std::uint64_t landed_on_3 = 1;
    for (std::uint64_t turn = 1; turn <= 60; ++turn) {
        bench.propose(std::string(1000, 'x'));
        bench.flush();
        for (const effect::PostWrite& write : bench.effects<effect::PostWrite>()) {
            ++(write.lane == kLane2 ? landed_on_2 : landed_on_3);
            if (write.lane == kLane3) written = write.at + write.bytes;
        }
        bench.step(event::Landed{kLane2, landed_on_2});
        if (bench.core().lane_to(kR3).state == Lane::State::open) bench.step(event::Landed{kLane3, landed_on_3});
        bench.step(event::Applied{bench.core().commit()});
        const Position consumed{bench.core().applied().position.value / 2};
        bench.step(event::Reported{kR2, transport::Report{.ballot = bench.core().promised(),
                                                          .incarnation = life(kR2),
                                                          .open_number = 1,
                                                          .sequence = turn,
                                                          .consumed = consumed,
                                                          .durable = {},
                                                          .committed = {},
                                                          .commit_checksum = 0}});
    }
    return written;
}

TEST(Leader, writes_only_below_the_space_that_the_follower_has_reported_free) {
    Bench bench(kR1);
    const Position written = leave_r3_behind(bench);
    EXPECT_LE(written, Position{Bench::kRingBytes - 1024});
    EXPECT_GT(written, Position{5'000});
    EXPECT_GT(bench.core().commit().position, Position{Bench::kRingBytes + Bench::kRingBytes / 2});
}

// S9: a notice about an entry that a follower lacks is nothing that it can act upon: it would stand still for ever.
TEST(Leader, tells_a_follower_without_space_of_the_highest_committed_entry_that_has_landed_there) {
    Bench bench(kR1);
    leave_r3_behind(bench);
    const log::Point landed = bench.core().lane_to(kR3).landed;
    ASSERT_GT(landed.index, Index{5});
    ASSERT_LT(landed.index, bench.core().commit().index);
    bench.tick(10);
    const std::vector<effect::WriteReport> reports = bench.effects<effect::WriteReport>();
    const auto notice = std::ranges::find(reports, kR3, &effect::WriteReport::peer);
    ASSERT_NE(notice, reports.end());
    EXPECT_EQ(notice->report.committed, landed.index);
    EXPECT_EQ(notice->report.commit_checksum, landed.checksum);
}

// S6: what a detached follower lacked it can learn from boards; then its leader can repair it after all.
TEST(Leader, attaches_a_detached_follower_again_whose_board_shows_that_the_ring_reaches_back_to_it) {
    Bench bench(kR1);
    leave_r3_behind(bench);
    bench.step(event::LaneBroken{kLane3});
    bench.tick(1);
    const std::uint64_t open_number = bench.sent<Prepare>(kR3).at(0).open_number;
    bench.receive(kR3, bench.promise(open_number));
    ASSERT_EQ(bench.core().lane_to(kR3).state, Lane::State::detached);
    // That it is behind is told it with an open number of its own (S1).
    ASSERT_EQ(bench.sent<Behind>(kR3).at(0).open_number, open_number + 1);

    transport::Board board;
    const auto asks_again = [&](Position applied, std::uint64_t heartbeats) {
        board.applied = applied;
        board.heartbeats = heartbeats;
        bench.step(event::BoardRead{kR3, board});
        bench.tick(1);
        return !bench.sent<Prepare>(kR3).empty();
    };
    const Position low_mark = bench.core().low_mark();
    ASSERT_GT(low_mark, Position{64});
    EXPECT_FALSE(asks_again({low_mark.value - 64}, 1)) << "what it needs is not there any more";
    ASSERT_TRUE(asks_again(low_mark, 2));
    EXPECT_EQ(bench.sent<Prepare>(kR3)[0].open_number, open_number + 2);

    // Its answer decides. One that does not reach far enough leaves it as it was, until its next heartbeat.
    bench.receive(kR3, bench.promise(open_number + 2));
    EXPECT_EQ(bench.core().lane_to(kR3).state, Lane::State::detached);
    EXPECT_FALSE(asks_again(low_mark, 2));
    ASSERT_TRUE(asks_again(low_mark, 3));
    Promise caught_up = bench.promise(open_number + 4);
    caught_up.last = caught_up.commit = bench.core().commit();
    bench.receive(kR3, caught_up);
    EXPECT_EQ(bench.core().lane_to(kR3).state, Lane::State::open);
    EXPECT_EQ(bench.effects<effect::ConnectLane>().size(), 1u);
}

TEST(Leader, takes_reports_about_the_lane_that_is_open_now_in_rising_order) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    transport::Report report{.ballot = bench.core().promised(),
                             .incarnation = life(kR2),
                             .open_number = 1,
                             .sequence = 5,
                             .consumed = Position{640},
                             .durable = {},
                             .committed = {},
                             .commit_checksum = 0};
    const auto consumed_after = [&](const transport::Report& told) {
        bench.step(event::Reported{kR2, told});
        return bench.core().lane_to(kR2).consumed.value;
    };
    transport::Report other = report;
    other.ballot = Ballot::of(9, kR1);
    EXPECT_EQ(consumed_after(other), 0u);
    other = report;
    other.incarnation = Incarnation{999};
    EXPECT_EQ(consumed_after(other), 0u);
    other = report;
    other.open_number = 2;
    EXPECT_EQ(consumed_after(other), 0u);
    EXPECT_EQ(consumed_after(report), 640u);
    report.consumed = Position{1280};
    EXPECT_EQ(consumed_after(report), 640u) << "the same sequence again";
    report.sequence = 6;
    EXPECT_EQ(consumed_after(report), 1280u);
}

TEST(Read, is_answered_by_probes_that_were_posted_after_it_came) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    bench.step(event::Applied{bench.core().commit()});
    ASSERT_EQ(bench.read(), 1u);
    bench.flush();
    ASSERT_EQ(bench.effects<effect::PostProbe>().size(), 2u);
    ASSERT_EQ(bench.read(), 2u);
    bench.flush();
    EXPECT_TRUE(bench.effects<effect::PostProbe>().empty()) << "one round at a time";

    bench.step(event::Landed{kLane2, 2});
    ASSERT_EQ(bench.effects<effect::ReadsReady>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::ReadsReady>()[0].through, 1u);
    bench.flush();
    EXPECT_EQ(bench.effects<effect::PostProbe>().size(), 2u);
    bench.step(event::Landed{kLane2, 3});
    ASSERT_EQ(bench.effects<effect::ReadsReady>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::ReadsReady>()[0].through, 2u);
}

TEST(Read, waits_for_the_commit_of_its_arrival_to_be_applied) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    ASSERT_EQ(bench.read(), 1u);
    bench.flush();
    bench.step(event::Landed{kLane2, 2});
    EXPECT_TRUE(bench.effects<effect::ReadsReady>().empty());
    bench.step(event::Applied{bench.core().commit()});
    EXPECT_EQ(bench.effects<effect::ReadsReady>().size(), 1u);
}

TEST(Read, does_not_start_before_the_own_no_op_is_committed) {
    Bench bench(kR1);
    bench.lead();
    ASSERT_EQ(bench.read(), 1u);
    bench.flush();
    EXPECT_TRUE(bench.effects<effect::PostProbe>().empty());
    bench.step(event::Landed{kLane2, 1});
    bench.flush();
    EXPECT_EQ(bench.effects<effect::PostProbe>().size(), 2u);
}

TEST(Read, is_lost_when_a_higher_ballot_is_promised) {
    Bench bench(kR1);
    lead_with_no_op(bench);
    bench.step(event::Applied{bench.core().commit()});
    ASSERT_EQ(bench.read(), 1u);
    bench.flush();
    bench.receive(kR2, Prepare{bench.core().genesis(), Ballot::of(9, kR2), 1});
    EXPECT_EQ(bench.effects<effect::ReadsLost>().size(), 1u);
    bench.step(event::Landed{kLane3, 2});
    EXPECT_TRUE(bench.effects<effect::ReadsReady>().empty());
    EXPECT_EQ(bench.read(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::core
