// Lanes of a leader: opened by a promise, repaired from the follower's commit, re-opened in the same ballot (S1, S6).
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>

namespace lockstep::core {

void Core::become_leader(Now now, Effects& effects) {
    LOCKSTEP_CHECK(config_.names(self()));  // S5
    LOCKSTEP_CHECK_OP(campaign_ballot_.value, ==, promised_.value);
    state_ = State::leader;
    leader_ = {};
    adopted_end_ = end_;
    no_op_ = {};
    room_until_ = {};
    retry_pause_ns_ = 0;
    handed_over_ = {};
    commit_rose_ns_ = now.monotonic_ns;
    base_monotonic_ns_ = now.monotonic_ns;
    base_timestamp_ns_ = std::max(end_.timestamp_ns, now.wall_ns);
    // The lanes whose promises are in hand count as in contact from now; the first time-out runs from here.
    for (Peer& peer : peers()) {
        peer.lane.contact_ns = now.monotonic_ns;
        if (peer.promise) open_lane(now, peer, *peer.promise, effects);
        peer.promise.reset();
    }
    append_no_op_when_ready(now, effects);
    publish(now, effects);
}

void Core::open_lane(Now now, Peer& peer, const Promise& promise, Effects& effects) {
    Lane& lane = peer.lane;
    LOCKSTEP_CHECK(lane.state == Lane::State::opening);
    peer.prepare_again_ns = 0;
    // S6: what this ring no longer holds unbroken cannot be repaired from it.
    LOCKSTEP_CHECK_OP(promise.commit.position.value, <=, end_.position.value);
    if (promise.commit.position < low_mark_) {
        drop_lane(peer, Lane::State::detached, effects);
        lane.open_number = ++peer.open_number;
        say_behind(peer, effects);
        return;
    }
    if (promise.commit.index == commit_.index) LOCKSTEP_CHECK_OP(promise.commit.checksum, ==, commit_.checksum);
    lane.state = Lane::State::open;
    lane.id = LaneId{LOCKSTEP_PLANTED(old_lane_counted) ? peer.id.value : ++last_lane_};
    lane.posted = promise.commit.position;
    lane.landed = promise.commit;
    lane.consumed = promise.consumed;
    lane.durable = {};
    lane.report_sequence = 0;
    lane.probe_landed = 0;
    lane.contact_ns = now.monotonic_ns;
    lane.flights.clear();
    effects.push(effect::ConnectLane{lane.id, peer.id, promise.lane});
    advance_commit(now);
    append_no_op_when_ready(now, effects);
}

// What had been acknowledged on the lane counts no more: the next one starts again from the follower's commit.
void Core::drop_lane(Peer& peer, Lane::State state, Effects& effects) {
    Lane& lane = peer.lane;
    if (lane.state == Lane::State::open) effects.push(effect::EndLane{lane.id});
    lane.state = state;
    lane.id = {};
    lane.landed = {};
    lane.flights.clear();
    peer.prepare_again_ns = 0;
}

void Core::on(Now now, const event::LaneBroken& broken, Effects& effects) {
    const auto found = std::ranges::find_if(peers(), [&](const Peer& peer) {
        return peer.lane.state == Lane::State::open && peer.lane.id == broken.lane;
    });
    if (found == peers().end()) return;  // a lane that was ended meanwhile (F5)
    // A lane on which nothing ever landed would break again at once.
    const bool never_worked = found->lane.flights.finished() == 0;
    drop_lane(*found, Lane::State::none, effects);
    found->prepare_again_ns = now.monotonic_ns + (never_worked ? spread(options_.election_timeout_ns / 8) : 0);
}

void Core::reopen_lanes(Now now, Effects& effects) {
    for (Peer& peer : peers()) {
        const bool missing = peer.lane.state == Lane::State::none || peer.lane.state == Lane::State::opening;
        if (missing && peer.up && now.monotonic_ns >= peer.prepare_again_ns) send_prepare(now, peer, effects);
    }
}

}  // namespace lockstep::core
