// Promises: who may write the own ring, and what it holds (S1, S2, S8).
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <utility>

namespace lockstep::core {

void Core::receive(Now now, const Peer& from, const Prepare& message, Effects& effects) {
    // Without the genesis there is no log to promise from (S7), with another it is another log; a ballot is its own
    // leader's only.
    if (LOCKSTEP_PLANTED(incarnation_ignored) && genesis_ == 0) {
        genesis_ = message.genesis;
        on(now, event::FormationKept{genesis_}, effects);
    }
    if (!formation_kept_ || message.genesis != genesis_ || message.ballot.leader() != from.id) return;
    learn_formed(now, effects);  // nobody campaigns before all hold the genesis
    highest_seen_ = std::max(highest_seen_, message.ballot);
    if (asked_promise_.serial != 0) {
        // One is on its way to the disk. Only a higher one takes its place; the others ask again.
        const bool again = message.ballot == asked_promise_.ballot && from.incarnation == asked_promise_.incarnation;
        if (again) asked_promise_.open_number = std::max(asked_promise_.open_number, message.open_number);
        if (message.ballot <= asked_promise_.ballot) return;
    }

    const bool same = message.ballot == promised_ && promised_to_ == from.incarnation;
    // What is committed was learned by catching up, perhaps: nobody can win below the ballot of it any more, and to
    // promise that would name a commit that its candidate's log does not hold.
    const Ballot least = std::max(promised_, commit_.ballot);
    const bool lower = message.ballot < least && !LOCKSTEP_PLANTED(lower_ballot_promised);
    if (lower || (message.ballot == promised_ && !same)) {
        // S1: one candidate only, id and incarnation, and never a lower ballot.
        effects.push(effect::Send{from.id, Refusal{message.ballot, message.open_number, least,
                                                   state_ == State::leader ? fit_to_lead(now) : hears_leader(now)}});
        return;
    }
    const bool failed = incoming_.state == Incoming::State::none && message.open_number == incoming_.open_number;
    const bool repeated = message.open_number <= incoming_.open_number && !LOCKSTEP_PLANTED(open_number_ignored);
    if (same && repeated && !failed) {
        // A repeat of the newest gets the stored answer, and nothing is fenced; an older one nothing at all.
        if (message.open_number == incoming_.open_number && incoming_.state == Incoming::State::open)
            effects.push(effect::Send{from.id, incoming_.answer});
        return;
    }
    make_promise(now, message.ballot, from.id, from.incarnation, message.open_number, effects);
}

// S1: in durable mode a promise is on disk before anything of it is visible. Until then this replica goes on as before.
void Core::make_promise(Now now, Ballot ballot, ReplicaId candidate, Incarnation incarnation,
                        std::uint64_t open_number, Effects& effects) {
    const bool known = ballot == promised_ && incarnation == promised_to_;  // a lane opened again (S1)
    if (!counts_kept() || known) return take_promise(now, ballot, candidate, incarnation, open_number, effects);
    effects.push(effect::KeepPromise{++last_promise_, ballot, incarnation});
    if (LOCKSTEP_PLANTED(promise_before_disk)) return take_promise(now, ballot, candidate, incarnation, open_number,
                                                                   effects);
    asked_promise_ = {last_promise_, ballot, candidate, incarnation, open_number};
}

void Core::on(Now now, const event::PromiseKept& kept, Effects& effects) {
    if (kept.serial != asked_promise_.serial) return;  // a higher one is on its way
    const AskedPromise asked = std::exchange(asked_promise_, {});
    const bool campaigns = state_ == State::preparing && asked.ballot == campaign_ballot_;
    take_promise(now, asked.ballot, asked.candidate, asked.incarnation, asked.open_number, effects);
    if (!campaigns) return;
    state_ = State::preparing;
    campaign_ends_ns_ = now.monotonic_ns + options_.election_timeout_ns;
    for (Peer& peer : peers()) send_prepare(now, peer, effects);
}

// S2, the first half: promise, stop leading, end the own outgoing lanes (S11), fence. What follows waits for Fenced.
void Core::take_promise(Now now, Ballot ballot, ReplicaId candidate, Incarnation incarnation,
                        std::uint64_t open_number, Effects& effects) {
    if (!LOCKSTEP_PLANTED(lower_ballot_promised)) LOCKSTEP_CHECK_OP(ballot.value, >=, promised_.value);
    promised_ = ballot;
    promised_to_ = incarnation;
    stop_leading(now, effects);
    state_ = State::follower;
    own_last_.reset();
    look_again_ = false;
    end_fetch(effects);
    if (LOCKSTEP_PLANTED(scan_before_fence)) incoming_.answer.last = scan_to_true_end();
    incoming_.state = Incoming::State::fencing;
    incoming_.behind = false;
    incoming_.holder = candidate;
    incoming_.holder_incarnation = incarnation;
    incoming_.open_number = open_number;
    effects.push(effect::Fence{++incoming_.serial});
    if (candidate == options_.id) return;
    // Time for the one that asked to win and show itself as leader.
    leader_ = candidate;
    leader_ballot_ = ballot;
    heard_ns_ = now.monotonic_ns;
}

// S2, the second half: only now does the ring stand still. Scan it, open the new lane, answer.
void Core::on(Now now, const event::Fenced& fenced, Effects& effects) {
    if (fenced.serial != incoming_.serial || incoming_.state != Incoming::State::fencing) return;
    // The last holder may have written anything below the space that was reported free (S6).
    if (!LOCKSTEP_PLANTED(low_mark_not_raised)) low_mark_ = std::max(low_mark_, incoming_.reported_consumed);
    const log::Point last = LOCKSTEP_PLANTED(scan_before_fence) ? incoming_.answer.last : scan_to_true_end();
    // S8: nothing above the commit is believed until the new ballot's leader has written behind it.
    end_ = commit_;
    if (!LOCKSTEP_PLANTED(config_outlives_its_entry)) take_config(committed_config_);
    keep_anew();
    looked_limit_ = {};

    if (incoming_.holder == options_.id) {
        incoming_.state = Incoming::State::none;
        own_last_ = last;
        if (state_ != State::preparing) return;
        decide(now, own_config_.config, effects);
        return;
    }
    if (incoming_.behind) {
        incoming_.state = Incoming::State::catching_up;
        ++fetch_serial_;
        return fetch(effects);
    }
    if (promised_ < commit_.ballot) {  // it rose while the promise was on its way to the disk
        incoming_.state = Incoming::State::none;
        return;
    }
    // The new holder rewrites what is above the commit: pads there are not to be remembered.
    lap_ends_.forget_from(commit_.position);
    incoming_.answer = Promise{.ballot = promised_,
                               .candidate = incoming_.holder_incarnation,
                               .open_number = incoming_.open_number,
                               .last = last,
                               .commit = commit_,
                               .config = own_config_.at,
                               .low_mark = low_mark_,
                               .consumed = consumed(),
                               .loss = loss_,
                               .lane = {}};
    // What is promised as free now is free for the new holder from its first write on.
    incoming_.reported_consumed = std::max(incoming_.reported_consumed, incoming_.answer.consumed);
    if (!LOCKSTEP_PLANTED(low_mark_not_raised)) low_mark_ = std::max(low_mark_, incoming_.reported_consumed);
    incoming_.answer.low_mark = low_mark_;
    incoming_.state = Incoming::State::opening;
    effects.push(effect::OpenIncoming{incoming_.serial, incoming_.holder, incoming_.holder_incarnation,
                                      commit_.position});
}

void Core::on(Now, const event::IncomingOpened& opened, Effects& effects) {
    if (opened.serial != incoming_.serial || incoming_.state != Incoming::State::opening) return;
    if (!opened.address) {
        incoming_.state = Incoming::State::none;  // a repeat of the prepare tries again
        return;
    }
    incoming_.answer.lane = *opened.address;
    incoming_.state = Incoming::State::open;
    effects.push(effect::Send{incoming_.holder, incoming_.answer});
}

// From the commit to the last entry that chains, whatever its ballot: what this replica has accepted. Commit indices
// in the entries' headers are true of the chain that they stand in (S9).
log::Point Core::scan_to_true_end() {
    lap_ends_.forget_from(commit_.position);
    log::Point last = commit_;
    Index certified;
    own_config_ = committed_config_;
    while (const auto entry = log::next_entry(ring_, last, log::kNoLimit)) {
        if (entry->header.kind == log::EntryKind::pad) lap_ends_.note_pad(entry->start);
        if (entry->header.kind == log::EntryKind::config && !LOCKSTEP_PLANTED(decided_by_committed))
            own_config_ = config_in(entry->payload, entry->end.index);
        certified = std::max(certified, Index{entry->header.commit});
        last = entry->end;
        if (last.index == notice_index_ && last.checksum == notice_checksum_ &&
            !LOCKSTEP_PLANTED(certificate_needs_own_ballot))
            certified = last.index;
    }
    end_ = last;
    commit_up_to(certified);
    return last;
}

// Ends what a leader has under way. The ring stays as it is: its tail may yet be adopted by the next leader.
void Core::stop_leading(Now now, Effects& effects) {
    if (state_ != State::leader) return;
    state_ = State::follower;
    for (Peer& peer : peers()) drop_lane(peer, Lane::State::none, effects);
    lose_reads(effects);
    effects.push(effect::ProposalsLost{});
    low_mark_ = std::max(low_mark_, Position{std::max(end_.position.value, ring_.bytes()) - ring_.bytes()});
    end_ = commit_;
    if (!LOCKSTEP_PLANTED(config_outlives_its_entry)) take_config(committed_config_);
    keep_anew();
    no_op_ = {};
    log_full_ = false;
    leader_ = {};
    heard_ns_ = 0;
    campaign_at_ns_ = 0;
    publish(now, effects);
}

}  // namespace lockstep::core
