// Who is asked, who is counted, and whose log is adopted (S3, S4, S5, S12).
#include "tests/unit/core/bench.h"

namespace lockstep::core {
namespace {

log::Point point(Ballot ballot, std::uint64_t index) { return {Index{index}, Position{index * 64}, index, ballot, 1}; }

TEST(PreVote, changes_nothing_at_the_one_that_is_asked) {
    Bench bench(kR2);
    bench.receive(kR3, PreVote{Bench::kGenesis, Ballot::of(7, kR3), {}, {}});
    ASSERT_EQ(bench.sent<PreVoteReply>(kR3).size(), 1u);
    EXPECT_TRUE(bench.sent<PreVoteReply>(kR3)[0].granted);
    EXPECT_EQ(bench.all_effects().size(), 1u);
    EXPECT_EQ(bench.core().promised(), Ballot{});
}

TEST(PreVote, is_refused_while_the_leader_is_heard_unless_the_leader_hands_over) {
    Bench bench(kR2);
    const Ballot leading = Ballot::of(1, kR1);
    bench.receive(kR1, Prepare{Bench::kGenesis, leading, 1});
    bench.finish_promise();
    bench.receive(kR3, PreVote{Bench::kGenesis, Ballot::of(7, kR3), {}, {}});
    EXPECT_FALSE(bench.sent<PreVoteReply>(kR3).at(0).granted);
    bench.receive(kR3, PreVote{Bench::kGenesis, Ballot::of(7, kR3), {}, leading});
    EXPECT_TRUE(bench.sent<PreVoteReply>(kR3).at(0).granted);
    bench.receive(kR3, PreVote{Bench::kGenesis, Ballot::of(7, kR3), {}, Ballot::of(2, kR1)});
    EXPECT_FALSE(bench.sent<PreVoteReply>(kR3).at(0).granted) << "handed over in a ballot that it did not promise";
}

TEST(PreVote, of_a_ballot_that_is_not_above_the_promise_is_refused) {
    Bench bench(kR2);
    bench.receive(kR1, Prepare{Bench::kGenesis, Ballot::of(8, kR1), 1});
    bench.finish_promise();
    bench.step(event::PeerDown{kR1, true});
    bench.receive(kR3, PreVote{Bench::kGenesis, Ballot::of(7, kR3), {}, {}});
    EXPECT_FALSE(bench.sent<PreVoteReply>(kR3).at(0).granted);
    EXPECT_EQ(bench.sent<PreVoteReply>(kR3).at(0).promised, Ballot::of(8, kR1));
}

TEST(Campaign, the_own_promise_does_not_count_before_its_own_fence) {
    Bench bench(kR1);
    bench.campaign();
    const std::uint64_t serial = bench.fence_serial();
    bench.receive(kR2, bench.promise());
    bench.receive(kR3, bench.promise());
    EXPECT_EQ(bench.core().role(), Role::candidate);
    bench.step(event::Fenced{serial});
    EXPECT_EQ(bench.core().role(), Role::leader);
}

TEST(Campaign, another_life_of_a_voter_is_neither_asked_nor_counted) {
    Bench bench(kR1);
    const Incarnation other{999};
    bench.step(event::PeerDown{kR3, true});
    bench.step(event::PeerUp{kR3, other});
    bench.step(event::PeerDown{kR2, true});
    bench.receive(kR3, other, PreVoteReply{bench.next_ballot(), true, false, {}});
    EXPECT_EQ(bench.core().role(), Role::follower) << "its pre-vote does not count";

    bench.step(event::PeerUp{kR2, life(kR2)});
    bench.receive(kR2, PreVoteReply{bench.next_ballot(), true, false, {}});
    ASSERT_EQ(bench.core().role(), Role::candidate);
    EXPECT_EQ(bench.sent<Prepare>(kR2).size(), 1u);
    EXPECT_TRUE(bench.sent<Prepare>(kR3).empty());
    bench.step(event::Fenced{bench.fence_serial()});
    bench.receive(kR3, other, bench.promise());
    EXPECT_EQ(bench.core().role(), Role::candidate) << "its promise does not count";
    bench.receive(kR2, bench.promise());
    EXPECT_EQ(bench.core().role(), Role::leader);
}

TEST(Campaign, a_promise_for_another_ballot_or_another_life_of_the_candidate_does_not_count) {
    Bench bench(kR1);
    bench.campaign();
    bench.step(event::Fenced{bench.fence_serial()});
    Promise promise = bench.promise();
    promise.ballot = Ballot::of(7, kR1);
    bench.receive(kR2, promise);
    promise = bench.promise();
    promise.candidate = Incarnation{999};
    bench.receive(kR2, promise);
    EXPECT_EQ(bench.core().role(), Role::candidate);
}

// S14: not even where all voters have answered, nor is its log adopted.
TEST(Campaign, a_corrupt_replicas_promise_never_counts) {
    Bench bench(kR1);
    bench.campaign();
    bench.step(event::Fenced{bench.fence_serial()});
    Promise corrupt = bench.promise();
    corrupt.loss = Loss::corrupt;
    corrupt.last = {Index{5}, Position{320}, 1, Ballot::of(1, kR2), 0};
    bench.receive(kR2, corrupt);
    EXPECT_EQ(bench.core().role(), Role::candidate);
    Promise suspect = bench.promise();
    suspect.loss = Loss::suspect;
    bench.receive(kR3, suspect);
    EXPECT_EQ(bench.core().role(), Role::candidate);
    EXPECT_TRUE(bench.effects<effect::ReadRing>().empty());
}

TEST(Campaign, with_a_majority_of_others_leads_over_a_corrupt_replica) {
    Bench bench(kR1);
    bench.campaign();
    bench.step(event::Fenced{bench.fence_serial()});
    Promise corrupt = bench.promise();
    corrupt.loss = Loss::corrupt;
    bench.receive(kR2, corrupt);
    bench.receive(kR3, bench.promise());
    EXPECT_EQ(bench.core().role(), Role::leader);
    EXPECT_EQ(bench.core().lane_to(kR2).state, Lane::State::open) << "it is repaired as any other";
}

TEST(Campaign, promises_itself_a_ballot_above_all_that_it_has_heard_of) {
    Bench bench(kR1);
    bench.receive(kR3, PreVoteReply{bench.next_ballot(), false, false, Ballot::of(40, kR3)});
    bench.campaign();
    EXPECT_EQ(bench.core().promised(), Ballot::of(41, kR1));
}

// Known bug 4 (hashicorp/raft issue 94), the candidate's own log being empty.
struct Choice {
    log::Point second;
    log::Point third;
    ReplicaId best;
};
class Adoption : public testing::TestWithParam<Choice> {};

TEST_P(Adoption, reads_the_log_with_the_higher_ballot_then_index) {
    Bench bench(kR1);
    bench.campaign();
    const std::uint64_t serial = bench.fence_serial();
    Promise second = bench.promise();
    second.last = GetParam().second;
    bench.receive(kR2, second);
    Promise third = bench.promise();
    third.last = GetParam().third;
    bench.receive(kR3, third);
    bench.step(event::Fenced{serial});
    ASSERT_EQ(bench.effects<effect::ReadRing>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::ReadRing>()[0].peer, GetParam().best);
}

INSTANTIATE_TEST_SUITE_P(
    Orders, Adoption,
    testing::Values(Choice{point(Ballot::of(3, kR1), 2), point(Ballot::of(2, kR1), 9), kR2},
                    Choice{point(Ballot::of(2, kR1), 9), point(Ballot::of(3, kR1), 2), kR3},
                    Choice{point(Ballot::of(3, kR1), 9), point(Ballot::of(3, kR1), 2), kR2},
                    Choice{point(Ballot::of(3, kR1), 2), point(Ballot::of(3, kR1), 9), kR3},
                    Choice{point(Ballot::of(3, kR1), 2), point(Ballot::of(3, kR2), 2), kR3}));

}  // namespace
}  // namespace lockstep::core
