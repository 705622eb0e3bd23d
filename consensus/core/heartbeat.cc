// Heartbeats are pulled: each replica raises a count on its board, the others read it. A slow network is then not a
// dead peer, and a count rises only where the loop makes progress (the idea is Mu's, OSDI 2020, section 5). All of it
// is a hint: no rule of safety depends on a clock.
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>

namespace lockstep::core {

void Core::beat(Now now, Effects& effects) {
    if (now.monotonic_ns < beat_at_ns_) return;
    beat_at_ns_ = now.monotonic_ns + options_.heartbeat_ns;
    if (!keeping_hangs(now)) ++heartbeats_;  // real progress only
    for (const Peer& peer : peers())
        if (peer.up) effects.push(effect::ReadBoard{peer.id});
    if (state_ == State::leader) {
        ++last_probe_;
        probe_due_ = true;
    }
    keep_log(now, true, effects);
    report_consumed(true, effects);
    notice_blocked(effects);
    if (catching_up()) fetch(effects);
    if (state_ == State::leader) {
        for (Peer& peer : peers())
            if (peer.lane.state == Lane::State::detached && peer.up) say_behind(peer, effects);
        replace_lost_voters(now, effects);
        caught_up_at_ = end_.position;
    }
    publish(now, effects);
}

void Core::publish(Now now, Effects& effects) {
    const bool leads = state_ == State::leader && fit_to_lead(now);
    effects.push(effect::Publish{transport::Board{.heartbeats = heartbeats_,
                                                  .promised = promised_,
                                                  .leading = leads ? campaign_ballot_ : Ballot{},
                                                  .applied = applied_.position,
                                                  .durable = kept_.position,
                                                  .committed = commit_.index,
                                                  .commit_checksum = commit_.checksum,
                                                  .checksum = 0}});
}

void Core::on(Now now, const event::BoardRead& read, Effects& effects) {
    Peer* peer = peer_of(read.peer);
    if (peer == nullptr) return;
    const transport::Board& board = read.board;
    peer->applied = std::max(peer->applied, board.applied);
    if (!formed_) return;
    const bool alive = board.heartbeats > peer->heartbeats || LOCKSTEP_PLANTED(stale_heartbeat_heard);
    peer->heartbeats = std::max(peer->heartbeats, board.heartbeats);
    highest_seen_ = std::max(highest_seen_, board.promised);
    take_certificate(board.committed, board.commit_checksum);
    // S6: what a detached follower lacked it may have learned from boards. Its own board says so, which is a hint: its
    // answer decides. The board of one that hangs stays as it is, so that none is asked more than once for a heartbeat.
    if (alive && state_ == State::leader && peer->lane.state == Lane::State::detached && board.applied >= low_mark_)
        peer->lane.state = Lane::State::none;
    if (!alive || !board.leading || board.leading.leader() != peer->id || board.leading < promised_) return;
    if (state_ == State::leader) stop_leading(now, effects);  // in a higher ballot somebody else leads
    leader_ = peer->id;
    leader_ballot_ = board.leading;
    heard_ns_ = now.monotonic_ns;
}

bool Core::hears_leader(Now now) const {
    return leader_ && heard_ns_ != 0 && leader_ballot_ >= promised_ &&
           now.monotonic_ns <= heard_ns_ + options_.election_timeout_ns;
}

// A leader is fit while a majority answers through lanes, and what waits gets committed.
bool Core::fit_to_lead(Now now) const { return idle_ns(now) <= options_.election_timeout_ns / 2; }

// How long this leader has gone without one or the other.
std::uint64_t Core::idle_ns(Now now) const {
    const auto contact = [&](Voter voter) {
        if (voter == self()) return now.monotonic_ns;
        const Peer* peer = peer_of(voter.id);
        return peer == nullptr || peer->lane.incarnation != voter.incarnation ? 0 : peer->lane.contact_ns;
    };
    std::uint64_t since = majority_reached<std::uint64_t>(config_, contact);
    const bool waits = no_op_.index == Index{} || end_.index > commit_.index;
    if (waits) since = std::min(since, commit_rose_ns_);
    if (keeping_hangs(now)) since = std::min(since, kept_rose_ns_);
    return now.monotonic_ns - std::min(since, now.monotonic_ns);
}

void Core::check_leadership(Now now, Effects& effects) {
    if (idle_ns(now) <= options_.election_timeout_ns) return;
    stop_leading(now, effects);
    campaign_at_ns_ = now.monotonic_ns + spread(options_.election_timeout_ns);
}

}  // namespace lockstep::core
