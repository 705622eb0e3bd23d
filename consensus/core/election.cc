// Elections: suspicion, pre-vote, campaign (S3), and who is counted (S5, S7, S12).
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <tuple>

namespace lockstep::core {

namespace {

constexpr std::uint64_t kFirstRetryNs = 500'000;

}  // namespace

// Replicas that would campaign before this one get a head start, if they are there to use it.
std::uint64_t Core::campaign_delay_ns() const {
    const auto ahead = std::ranges::count_if(
        peers(), [&](const Peer& peer) { return peer.up && peer.rank < own_rank_ && peer.id != leader_; });
    return static_cast<std::uint64_t>(ahead) * (options_.election_timeout_ns / 16);
}

void Core::consider_campaign(Now now, Effects& effects) {
    if (!formed_ || incoming_.state == Incoming::State::fencing || incoming_.state == Incoming::State::opening) return;
    if (asked_promise_.serial != 0) return;  // what comes next is the disk's turn: one that hangs never leads
    if (state_ != State::follower) {
        if (now.monotonic_ns >= campaign_ends_ns_) end_campaign(now, retry_pause_ns_);
        return;
    }
    if (hears_leader(now)) {
        campaign_at_ns_ = 0;
        retry_pause_ns_ = 0;
        return;
    }
    if (campaign_at_ns_ == 0) campaign_at_ns_ = now.monotonic_ns + campaign_delay_ns();
    if (now.monotonic_ns >= campaign_at_ns_) start_pre_vote(now, {}, effects);
}

void Core::start_pre_vote(Now now, Ballot handed_over, Effects& effects) {
    deciding_ = LOCKSTEP_PLANTED(decided_by_committed) ? committed_config_.config : newest_config().config;
    if (!deciding_.names(self()) || loss_ == Loss::corrupt) {  // S5, S14: it could not lead
        campaign_at_ns_ = now.monotonic_ns + options_.election_timeout_ns;
        return;
    }
    LOCKSTEP_CHECK(state_ == State::follower);
    state_ = State::pre_voting;
    handed_over_ = handed_over;
    highest_seen_ = std::max(highest_seen_, promised_);
    if (LOCKSTEP_PLANTED(promise_forgotten)) promised_ = {};
    campaign_ballot_ = Ballot::of(highest_seen_.round() + 1, options_.id);
    // A refusal for want of a missed heartbeat is soon overcome: ask again quickly at first, then ever more slowly.
    retry_pause_ns_ = std::clamp(retry_pause_ns_ * 2, kFirstRetryNs, options_.election_timeout_ns);
    campaign_ends_ns_ = now.monotonic_ns + std::max(retry_pause_ns_, options_.election_timeout_ns / 8);
    for (Peer& peer : peers()) {
        peer.pre_vote = Peer::PreVoted::unanswered;
        effects.push(effect::Send{peer.id, PreVote{genesis_, campaign_ballot_, commit_.position, handed_over_}});
    }
    if (has_majority(deciding_, [&](Voter voter) { return voter == self(); })) start_campaign(now, effects);
}

void Core::receive(Now now, const Peer& from, const PreVote& message, Effects& effects) {
    if (!formed_ || message.genesis != genesis_ || message.ballot.leader() != from.id) return;
    PreVoteReply reply{message.ballot, false, false, promised_};
    const bool welcome = message.handed_over && message.handed_over == promised_;
    const bool content = state_ == State::leader ? fit_to_lead(now) : hears_leader(now);
    // S14: whose promise counts for nothing is of no use to a campaign, nor can it make one.
    const bool counts = loss_ != Loss::corrupt || LOCKSTEP_PLANTED(corrupt_promise_counted);
    if (counts && message.ballot > promised_ && (welcome || !content)) {
        reply.better = low_mark_ > message.commit && votes() && !LOCKSTEP_PLANTED(adoption_impossible_retried);
        reply.granted = !reply.better;
        if (LOCKSTEP_PLANTED(pre_vote_raises_ballot) && reply.granted) promised_ = message.ballot;
    }
    effects.push(effect::Send{from.id, reply});
}

void Core::receive(Now now, Peer& from, const PreVoteReply& message, Effects& effects) {
    highest_seen_ = std::max(highest_seen_, message.promised);
    if (state_ != State::pre_voting || message.ballot != campaign_ballot_) return;
    if (message.better) {
        give_way(now, from, effects);
        return;
    }
    from.pre_vote = message.granted ? Peer::PreVoted::granted : Peer::PreVoted::refused;
    const auto granted = [&](Voter voter) {
        if (voter == self()) return true;
        const Peer* peer = peer_of(voter.id);
        if (peer == nullptr || peer->pre_vote != Peer::PreVoted::granted) return false;
        return peer->incarnation == voter.incarnation || LOCKSTEP_PLANTED(promise_of_another_life);
    };
    if (has_majority(deciding_, granted)) {
        start_campaign(now, effects);
        return;
    }
    const auto may_grant = [&](Voter voter) {
        if (voter == self()) return true;
        const Peer* peer = peer_of(voter.id);
        return peer != nullptr && peer->up && peer->pre_vote != Peer::PreVoted::refused;
    };
    // Nothing more is to be had from this round: the pause before the next starts now.
    if (!has_majority(deciding_, may_grant)) end_campaign(now, retry_pause_ns_);
}

void Core::start_campaign(Now now, Effects& effects) {
    highest_seen_ = std::max({highest_seen_, promised_, commit_.ballot});
    // S1: above every promise of this replica and above all that it has heard of.
    const Ballot ballot = Ballot::of(highest_seen_.round() + 1, options_.id);
    ++elections_started_;
    stop_leading(now, effects);
    for (Peer& peer : peers()) {
        peer.promise.reset();
        drop_lane(peer, Lane::State::none, effects);
    }
    own_last_.reset();
    deciding_ = newest_config().config;
    decided_by_ = {};
    make_promise(now, ballot, options_.id, options_.incarnation, 0, effects);
    state_ = State::preparing;
    campaign_ballot_ = ballot;
    campaign_ends_ns_ = now.monotonic_ns + options_.election_timeout_ns;
    retry_pause_ns_ = std::max(retry_pause_ns_, kFirstRetryNs);
    for (Peer& peer : peers()) send_prepare(now, peer, effects);
}

// The campaign is over without success; the next one starts after a pause.
void Core::end_campaign(Now now, std::uint64_t pause_ns) {
    LOCKSTEP_CHECK(state_ != State::leader);
    state_ = State::follower;
    handed_over_ = {};
    own_last_.reset();
    campaign_at_ns_ = now.monotonic_ns + std::max(spread(pause_ns), campaign_delay_ns());
    if (LOCKSTEP_PLANTED(retry_forgotten)) campaign_at_ns_ = UINT64_MAX;
}

void Core::send_prepare(Now now, Peer& peer, Effects& effects) {
    peer.prepare_again_ns = now.monotonic_ns + options_.election_timeout_ns / 8;
    if (state_ == State::preparing && promised_ != campaign_ballot_) return;  // S1: the own promise comes first
    if (!peer.up) return;
    // S12: a life that is no voter is of no use to a campaign, unless the config that names it may be lost (S14). A
    // leader has it learn.
    const Voter life{peer.id, peer.incarnation};
    const bool voters_only = !suspects() && !LOCKSTEP_PLANTED(promise_of_another_life);
    if (state_ != State::leader && !deciding_.names(life) && voters_only) return;
    // One open per ballot until it is answered: a repeat carries the same number, and nothing is fenced twice (S1).
    if (peer.lane.state != Lane::State::opening || peer.lane.incarnation != peer.incarnation) {
        if (peer.lane.incarnation != peer.incarnation) peer.lane.consumed = {};
        peer.lane.state = Lane::State::opening;
        peer.lane.incarnation = peer.incarnation;
        peer.lane.open_number = ++peer.open_number;
    }
    if (state_ == State::leader && !votes(peer.id)) effects.push(effect::Send{peer.id, Join{genesis_, first_config_}});
    effects.push(effect::Send{peer.id, Prepare{genesis_, campaign_ballot_, peer.lane.open_number}});
}

void Core::receive(Now now, Peer& from, const Promise& message, Effects& effects) {
    if (message.ballot != campaign_ballot_ || message.candidate != options_.incarnation) return;
    // Only the answer to the newest open (S1).
    if (from.lane.state != Lane::State::opening) return;
    if (message.open_number != from.lane.open_number && !LOCKSTEP_PLANTED(older_answer_believed)) return;
    if (from.lane.incarnation != from.incarnation) return;
    switch (state_) {
        case State::preparing:
        case State::adopting:
            // It knows of a later leader's commits: this ballot cannot be won with it, nor by anyone (S6).
            if (message.commit.ballot > campaign_ballot_) return end_campaign(now, retry_pause_ns_);
            from.promise = message;
            from.promise_incarnation = from.incarnation;
            from.prepare_again_ns = 0;
            if (state_ == State::preparing) count_promises(now, effects);
            break;
        case State::leader:
            // It has committed more than this log holds: in a newer ballot, which this replica has not heard of (S6).
            if (message.commit.position > end_.position) stop_leading(now, effects);
            else open_lane(now, from, message, effects);
            break;
        case State::follower:
        case State::pre_voting:
            break;
    }
}

// Whether anybody's promise may leave out what was acknowledged (S14).
bool Core::suspects() const {
    return loss_ != Loss::none || std::ranges::any_of(peers(), [](const Peer& peer) {
        return peer.promise && peer.promise->loss != Loss::none;
    });
}

// A majority of `config` is needed from here on: voters that were not asked yet are.
void Core::decide(Now now, const Config& config, Effects& effects) {
    deciding_ = config;
    for (Peer& peer : peers())
        if (!peer.promise && peer.lane.state != Lane::State::opening) send_prepare(now, peer, effects);
    count_promises(now, effects);
}

// S5, S7, S12: only pairs of id and incarnation that the config names are counted, this replica's own among them.
void Core::count_promises(Now now, Effects& effects) {
    if (!own_last_) return;  // its own fence and scan are not done (S2)
    const auto promised = [&](Voter voter) {
        if (voter == self()) return true;
        const Peer* peer = peer_of(voter.id);
        if (peer == nullptr || !peer->promise) return false;
        return peer->promise_incarnation == voter.incarnation || LOCKSTEP_PLANTED(promise_of_another_life);
    };
    // S14: an answer with a loss may leave out what was acknowledged. A suspect one counts when every voter has
    // answered, for somebody then has it; a corrupt one never does. What it leaves out may be a config that names more
    // voters: so every member has to answer, none of them corrupt, and is heard.
    const auto loss_of = [&](Voter voter) {
        if (voter == self()) return loss_;
        const Peer* peer = peer_of(voter.id);
        if (peer == nullptr || !peer->promise) return Loss::corrupt;
        if (LOCKSTEP_PLANTED(corrupt_promise_counted)) return Loss::none;
        return peer->promise->loss;
    };
    const auto intact = [&](Voter voter) { return promised(voter) && loss_of(voter) == Loss::none; };
    const auto not_corrupt = [&](Voter voter) { return promised(voter) && loss_of(voter) != Loss::corrupt; };
    const bool all = std::ranges::all_of(deciding_.voters.all(), not_corrupt) &&
                     std::ranges::all_of(deciding_.next.all(), not_corrupt) &&
                     std::ranges::all_of(peers(), [](const Peer& peer) {
                         return peer.promise && peer.promise->loss != Loss::corrupt;
                     });
    const bool enough = has_majority(deciding_, intact);
    if (!all && !enough) return;

    // S4: the highest (last ballot, last index); on a tie its own. Of the voters that its own newest config names, or
    // that of the log which named others; and that log is a choice still, so that the choice never goes back. A corrupt
    // one is no choice: without it a majority has all that counts, and it could not campaign where this one gives way.
    Peer* best = nullptr;
    log::Point last = *own_last_;
    for (Peer& peer : peers()) {
        const Voter life{peer.id, peer.promise_incarnation};
        const bool heard = deciding_.names(life) || own_config_.config.names(life) || peer.id == decided_by_ || !enough;
        if (!heard || !promised(life) || loss_of(life) == Loss::corrupt) continue;
        const log::Point& theirs = peer.promise->last;
        bool better = std::tie(theirs.ballot, theirs.index) > std::tie(last.ballot, last.index);
        if (LOCKSTEP_PLANTED(index_before_ballot))
            better = std::tie(theirs.index, theirs.ballot) > std::tie(last.index, last.ballot);
        if (LOCKSTEP_PLANTED(adoption_by_index_only)) better = theirs.index > last.index;
        if (better) {
            best = &peer;
            last = theirs;
        }
    }
    adopt(now, best, effects);
}

void Core::receive(Now now, Peer& from, const Refusal& message, Effects& effects) {
    highest_seen_ = std::max(highest_seen_, message.promised);
    if (message.ballot != campaign_ballot_ || message.promised < promised_) return;
    if (from.lane.state != Lane::State::opening || message.open_number != from.lane.open_number) return;
    if (state_ == State::preparing || state_ == State::adopting) {
        if (message.promised > campaign_ballot_) end_campaign(now, retry_pause_ns_);
        return;
    }
    if (state_ != State::leader) return;
    from.lane.state = Lane::State::none;
    from.prepare_again_ns = now.monotonic_ns + spread(options_.election_timeout_ns);
    if (message.hears_leader) {
        if (votes(from.id)) stop_leading(now, effects);  // by a learner's word no leader gives way (S12)
    } else if (now.monotonic_ns >= campaign_above_ns_) {
        // S1: nobody leads in that ballot, but this voter can only be won by one above it. Rarely, for it ends every
        // proposal under way.
        campaign_above_ns_ = now.monotonic_ns + 4 * options_.election_timeout_ns;
        start_campaign(now, effects);
    }
}

// S3: the one that asks cannot adopt, or hands over; whoever promised it may be asked without waiting.
void Core::receive(Now now, const Peer& from, const Campaign& message, Effects& effects) {
    if (!formed_ || message.ballot.leader() != from.id) return;
    if (state_ != State::follower || incoming_.state == Incoming::State::fencing ||
        incoming_.state == Incoming::State::opening || asked_promise_.serial != 0)
        return;
    if (message.ballot == promised_ || !hears_leader(now)) start_pre_vote(now, message.ballot, effects);
}

void Core::give_way(Now now, const Peer& to, Effects& effects) {
    // In pre-voting no ballot of its own is promised yet: the request then rests on nobody hearing a leader.
    const Ballot ballot = state_ == State::pre_voting ? Ballot::of(promised_.round(), options_.id) : campaign_ballot_;
    effects.push(effect::Send{to.id, Campaign{ballot}});
    end_campaign(now, options_.election_timeout_ns);
}

}  // namespace lockstep::core
