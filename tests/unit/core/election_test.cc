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

// S14: what a suspect voter lost may be the config that made the third one a voter, and so a part of a majority. Then
// that one has to answer; and to have lost more than its last batch is no answer.
TEST(Campaign, over_a_suspect_voter_nobody_leads_while_a_member_is_corrupt) {
    for (const Loss third : {Loss::none, Loss::corrupt}) {
        CoreOptions options;
        options.id = kR1;
        options.incarnation = life(kR1);
        options.members = {kR1, kR2, kR3};
        options.member_count = 3;
        options.durability = Durability::durable;
        options.random_seed = 5;
        Recovered recovered;
        recovered.genesis = Bench::kGenesis;
        for (const ReplicaId voter : {kR1, kR2}) recovered.config.voters.add({voter, life(voter)});
        recovered.first_config = recovered.config;
        recovered.formed = true;
        recovered.promised = Ballot::of(3, kR2);
        recovered.promised_to = life(kR2);
        recovered.commit = {Index{}, Position{}, Bench::kGenesis, {}, 0};
        RingMemory ring(Bench::kRingBytes), scratch(Bench::kRingBytes);
        Core core(options, log::Ring(ring.span()), log::Ring(scratch.span()), recovered);

        std::vector<Event> events{event::PeerUp{kR2, life(kR2)}, event::PeerUp{kR3, life(kR3)}};
        Now now{.monotonic_ns = 1000 * kMs, .wall_ns = 1};
        bool led = false;
        for (int ticks = 0; ticks < 100; ++ticks) {
            now.monotonic_ns += 20 * kMs;
            events.push_back(event::Tick{});
            while (!events.empty()) {
                const Event next = events.front();
                events.erase(events.begin());
                Effects effects;
                core.step(now, next, effects);
                led |= core.role() == Role::leader;
                for (const Effect& effect : effects.all()) {
                    if (const auto* kept = std::get_if<effect::KeepPromise>(&effect))
                        events.push_back(event::PromiseKept{kept->serial});
                    if (const auto* fence = std::get_if<effect::Fence>(&effect))
                        events.push_back(event::Fenced{fence->serial});
                    const auto* send = std::get_if<effect::Send>(&effect);
                    if (send == nullptr) continue;
                    if (const auto* asked = std::get_if<PreVote>(&send->message); asked && send->peer == kR2)
                        events.push_back(event::Received{kR2, life(kR2), PreVoteReply{asked->ballot, true, false, {}}});
                    if (const auto* asked = std::get_if<Prepare>(&send->message)) {
                        Promise promise;
                        promise.ballot = asked->ballot;
                        promise.candidate = life(kR1);
                        promise.open_number = asked->open_number;
                        promise.last = promise.commit = recovered.commit;
                        promise.loss = send->peer == kR2 ? Loss::suspect : third;
                        promise.lane = kAddress;
                        events.push_back(event::Received{send->peer, life(send->peer), promise});
                    }
                }
            }
        }
        EXPECT_EQ(led, third == Loss::none);
    }
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
