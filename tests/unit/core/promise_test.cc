// What a replica promises, to whom, and in which order it does so (S1, S2, S8).
#include "tests/unit/core/bench.h"

namespace lockstep::core {
namespace {

constexpr Ballot kBallot = Ballot::of(5, kR1);

Prepare prepare(Ballot ballot, std::uint64_t open_number = 1) { return {Bench::kGenesis, ballot, open_number}; }

TEST(Promise, is_answered_when_the_lane_is_open_and_not_before) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot));
    EXPECT_EQ(bench.core().promised(), kBallot);
    const std::uint64_t serial = bench.fence_serial();
    EXPECT_TRUE(bench.sent<Promise>(kR1).empty());

    bench.step(event::Fenced{serial});
    ASSERT_EQ(bench.effects<effect::OpenIncoming>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::OpenIncoming>()[0].holder, kR1);
    EXPECT_EQ(bench.effects<effect::OpenIncoming>()[0].incarnation, life(kR1));
    EXPECT_TRUE(bench.sent<Promise>(kR1).empty());

    bench.step(event::IncomingOpened{serial, kAddress});
    ASSERT_EQ(bench.sent<Promise>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Promise>(kR1)[0].ballot, kBallot);
    EXPECT_EQ(bench.sent<Promise>(kR1)[0].candidate, life(kR1));
}

TEST(Promise, another_life_of_the_candidate_is_refused_in_the_same_ballot) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot));
    bench.finish_promise();

    const Incarnation other{999};
    bench.step(event::PeerDown{kR1, true});
    bench.step(event::PeerUp{kR1, other});
    bench.receive(kR1, other, prepare(kBallot, 2));
    EXPECT_TRUE(bench.effects<effect::Fence>().empty());
    ASSERT_EQ(bench.sent<Refusal>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Refusal>(kR1)[0].promised, kBallot);
}

TEST(Promise, a_lower_ballot_is_refused_and_changes_nothing) {
    Bench bench(kR2);
    bench.receive(kR3, prepare(Ballot::of(5, kR3)));
    bench.finish_promise();

    bench.receive(kR1, prepare(Ballot::of(5, kR1)));
    EXPECT_TRUE(bench.effects<effect::Fence>().empty());
    ASSERT_EQ(bench.sent<Refusal>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Refusal>(kR1)[0].promised, Ballot::of(5, kR3));
    EXPECT_EQ(bench.core().promised(), Ballot::of(5, kR3));
}

TEST(Promise, a_ballot_is_for_its_own_leader_only) {
    Bench bench(kR2);
    bench.receive(kR3, prepare(kBallot));
    EXPECT_EQ(bench.core().promised(), Ballot{});
    EXPECT_TRUE(bench.all_effects().empty());
}

TEST(Promise, a_cluster_formed_apart_gets_none) {
    Bench bench(kR2);
    bench.receive(kR1, Prepare{Bench::kGenesis + 1, kBallot, 1});
    EXPECT_EQ(bench.core().promised(), Ballot{});
    EXPECT_TRUE(bench.all_effects().empty());
}

TEST(Promise, a_repeat_gets_the_same_answer_and_nothing_is_fenced) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot, 3));
    const std::uint64_t serial = bench.fence_serial();
    bench.receive(kR1, prepare(kBallot, 3));
    EXPECT_TRUE(bench.all_effects().empty()) << "it is not answered yet";
    bench.step(event::Fenced{serial});
    bench.step(event::IncomingOpened{serial, kAddress});
    const auto answer = bench.sent<Promise>(kR1).at(0);

    // The ring goes on changing under the lane; the answer does not.
    log::Point tail = bench.start();
    write_entry(bench, tail, kBallot, "later");
    bench.receive(kR1, prepare(kBallot, 3));
    EXPECT_TRUE(bench.effects<effect::Fence>().empty());
    ASSERT_EQ(bench.sent<Promise>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Promise>(kR1)[0].last, answer.last);
}

TEST(Promise, an_older_open_gets_no_answer_and_a_newer_one_fences_again) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot, 3));
    bench.finish_promise();
    bench.receive(kR1, prepare(kBallot, 2));
    EXPECT_TRUE(bench.all_effects().empty());
    bench.receive(kR1, prepare(kBallot, 4));
    bench.finish_promise();
    ASSERT_EQ(bench.sent<Promise>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Promise>(kR1)[0].open_number, 4u);
}

TEST(Promise, whose_lane_cannot_be_opened_is_not_given_before_the_candidate_asks_again) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot));
    const std::uint64_t serial = bench.fence_serial();
    bench.step(event::Fenced{serial});
    bench.step(event::IncomingOpened{serial, {}});
    EXPECT_TRUE(bench.sent<Promise>(kR1).empty());
    bench.receive(kR1, prepare(kBallot));
    bench.finish_promise();
    EXPECT_EQ(bench.sent<Promise>(kR1).size(), 1u);
}

TEST(Promise, the_scan_sees_what_landed_until_the_fence_was_done) {
    Bench bench(kR2);
    bench.receive(kR3, prepare(Ballot::of(1, kR3)));
    bench.finish_promise();
    log::Point tail = bench.start();
    write_entry(bench, tail, Ballot::of(1, kR3), "a");

    bench.receive(kR1, prepare(kBallot));
    const std::uint64_t serial = bench.fence_serial();
    // The last write lands while the fence is under way.
    write_entry(bench, tail, Ballot::of(1, kR3), "b");
    bench.step(event::Fenced{serial});
    bench.step(event::IncomingOpened{serial, kAddress});
    ASSERT_EQ(bench.sent<Promise>(kR1).size(), 1u);
    EXPECT_EQ(bench.sent<Promise>(kR1)[0].last, tail);
}

TEST(Promise, a_fence_of_a_promise_that_was_overtaken_answers_nobody) {
    Bench bench(kR2);
    bench.receive(kR1, prepare(kBallot));
    const std::uint64_t first = bench.fence_serial();
    bench.receive(kR3, prepare(Ballot::of(6, kR3)));
    const std::uint64_t second = bench.fence_serial();
    bench.step(event::Fenced{first});
    EXPECT_TRUE(bench.all_effects().empty());
    bench.step(event::Fenced{second});
    bench.step(event::IncomingOpened{second, kAddress});
    EXPECT_TRUE(bench.sent<Promise>(kR1).empty());
    EXPECT_EQ(bench.sent<Promise>(kR3).size(), 1u);
}

TEST(Promise, a_tail_of_an_older_ballot_is_named_but_not_believed) {
    Bench bench(kR2);
    const Ballot older = Ballot::of(1, kR3);
    bench.receive(kR3, prepare(older));
    bench.finish_promise();
    log::Point tail = bench.start();
    write_entry(bench, tail, older, "a");
    bench.step(event::Look{{UINT64_MAX}});
    EXPECT_EQ(bench.core().end(), tail);

    bench.receive(kR1, prepare(kBallot));
    bench.finish_promise();
    EXPECT_EQ(bench.sent<Promise>(kR1).at(0).last, tail);
    bench.step(event::Look{{UINT64_MAX}});
    EXPECT_EQ(bench.core().end(), bench.start()) << "stale until the new ballot's leader has written behind it";

    write_entry(bench, tail, kBallot, "b");
    bench.step(event::Look{{UINT64_MAX}});
    EXPECT_EQ(bench.core().end(), tail);
}

TEST(Promise, a_leader_ends_its_lanes_and_loses_its_proposals_before_it_fences) {
    Bench bench(kR1);
    bench.lead();
    bench.receive(kR2, Prepare{bench.core().genesis(), Ballot::of(9, kR2), 1});
    std::string order;
    for (const Effect& effect : bench.all_effects()) {
        if (std::holds_alternative<effect::EndLane>(effect)) order += "end ";
        if (std::holds_alternative<effect::ProposalsLost>(effect)) order += "lost ";
        if (std::holds_alternative<effect::Fence>(effect)) order += "fence ";
    }
    EXPECT_EQ(order, "end end lost fence ");
    EXPECT_EQ(bench.core().role(), Role::follower);
}

}  // namespace
}  // namespace lockstep::core
