// What a follower takes for committed (S8, S9).
#include "tests/unit/core/bench.h"

namespace lockstep::core {
namespace {

constexpr Ballot kBallot = Ballot::of(5, kR1);
constexpr event::Look kLook{{UINT64_MAX}};

// Follows r1, with two entries in the ring that it believes.
log::Point follow(Bench& bench, log::Point& first) {
    bench.receive(kR1, Prepare{Bench::kGenesis, kBallot, 1});
    bench.finish_promise();
    log::Point tail = bench.start();
    write_entry(bench, tail, kBallot, "a");
    first = tail;
    write_entry(bench, tail, kBallot, "b");
    bench.step(kLook);
    EXPECT_EQ(bench.core().end(), tail);
    EXPECT_EQ(bench.core().commit(), bench.start());
    return tail;
}

event::BoardRead board(ReplicaId of, Index committed, std::uint64_t checksum) {
    transport::Board board;
    board.heartbeats = 1;
    board.committed = committed;
    board.commit_checksum = checksum;
    return {of, board};
}

TEST(Certificate, is_acted_upon_where_the_own_chain_has_its_checksum) {
    Bench bench(kR2);
    log::Point first;
    follow(bench, first);
    bench.step(board(kR3, first.index, first.checksum));
    EXPECT_EQ(bench.core().commit(), first);
}

TEST(Certificate, of_another_entry_at_that_index_is_not_acted_upon) {
    Bench bench(kR2);
    log::Point first;
    follow(bench, first);
    bench.step(board(kR3, first.index, first.checksum + 1));
    bench.step(kLook);
    EXPECT_EQ(bench.core().commit(), bench.start());
}

TEST(Certificate, that_comes_before_its_entry_is_kept) {
    Bench bench(kR2);
    log::Point first;
    log::Point tail = follow(bench, first);
    log::Point third = tail;
    write_entry(bench, third, kBallot, "c");
    bench.step(board(kR1, third.index, third.checksum));
    bench.step(kLook);
    EXPECT_EQ(bench.core().commit(), third);
}

TEST(Certificate, in_a_header_says_the_same_for_its_own_chain) {
    Bench bench(kR2);
    log::Point first;
    log::Point tail = follow(bench, first);
    write_entry(bench, tail, kBallot, "c", first.index);
    bench.step(kLook);
    EXPECT_EQ(bench.core().commit(), first);
}

TEST(Certificate, lifts_the_belief_over_entries_of_an_older_ballot) {
    Bench bench(kR2);
    log::Point first;
    const log::Point tail = follow(bench, first);
    bench.receive(kR3, Prepare{Bench::kGenesis, Ballot::of(6, kR3), 1});
    bench.finish_promise();
    bench.step(kLook);
    EXPECT_EQ(bench.core().end(), bench.start());
    bench.step(board(kR1, tail.index, tail.checksum));
    bench.step(kLook);
    EXPECT_EQ(bench.core().commit(), tail);
}

TEST(Follower, reports_with_every_heartbeat_what_may_be_overwritten) {
    Bench bench(kR2);
    log::Point first;
    follow(bench, first);
    bench.step(board(kR3, first.index, first.checksum));
    bench.step(event::Applied{first});
    bench.tick(20);
    ASSERT_EQ(bench.effects<effect::WriteReport>().size(), 1u);
    const transport::Report report = bench.effects<effect::WriteReport>()[0].report;
    EXPECT_EQ(report.ballot, kBallot);
    EXPECT_EQ(report.open_number, 1u);
    EXPECT_EQ(report.consumed, Position{0}) << "a tail of applied bytes is kept for others";
    bench.tick(20);
    EXPECT_GT(bench.effects<effect::WriteReport>().at(0).report.sequence, report.sequence);
}

}  // namespace
}  // namespace lockstep::core
