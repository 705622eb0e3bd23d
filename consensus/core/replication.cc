// The leader's log: appending, one gathered write per follower, the commit rule (S6, S11).
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>

namespace lockstep::core {

namespace {

// More than one write of a turn is only needed at the ring's end and while repairing.
constexpr int kWritesPerTurn = 4;
// Gathering instead of posting: with this many under way, what comes meanwhile goes as one write (no timer).
constexpr std::size_t kWritesUnderWay = 8;
static_assert(kWritesUnderWay < Flights::kMax, "room is left for probes");

}  // namespace

inline log::Stamp Core::stamp(Now now) const {
    // The greater of the last entry's time and this clock, moved on by the clock that cannot jump.
    std::uint64_t timestamp = base_timestamp_ns_ + (now.monotonic_ns - base_monotonic_ns_);
    if (LOCKSTEP_PLANTED(wall_clock_stamped)) timestamp = now.wall_ns;
    return log::Stamp{campaign_ballot_, commit_.index, std::max(timestamp, end_.timestamp_ns)};
}

Proposed Core::propose(Now now, BytesView command, Effects& effects) {
    if (state_ != State::leader) return Proposed::not_leader;
    if (no_op_.index == Index{}) return Proposed::not_yet;
    if (log::entry_bytes(command.size()) > geometry_.max_entry_bytes) return Proposed::too_large;
    const Position new_end = end_.position + log::bytes_to_append(ring_, end_.position, command.size());
    if (new_end > room_until_ && !make_room(now, new_end, false, effects)) {
        waits_for_room_ = true;
        return Proposed::not_yet;
    }
    if (end_.index == commit_.index) commit_rose_ns_ = now.monotonic_ns;  // it starts to wait now
    append_entry(now, log::EntryKind::command, command);
    return Proposed::appended;
}

inline void Core::append_entry(Now now, log::EntryKind kind, BytesView payload) {
    const Position before = end_.position;
    const Position start = log::append(ring_, end_, kind, stamp(now), payload);
    if (start != before) lap_ends_.note_pad(before);
}

// S16: in effect at once. Where there is no room the next heartbeat tries again.
void Core::append_config(Now now, const Config& config, Effects& effects) {
    const std::string bytes = bytes_of(config);
    const Position new_end = end_.position + log::bytes_to_append(ring_, end_.position, bytes.size());
    const ConfigAt before{config_at_, config_};
    take_config({config_at_, config});  // what its majority may yet need is kept
    const bool room = make_room(now, new_end, false, effects);
    take_config(before);
    if (!room) return;
    if (end_.index == commit_.index) commit_rose_ns_ = now.monotonic_ns;  // it starts to wait now
    append_entry(now, log::EntryKind::config, std::as_bytes(std::span(bytes)));
    if (!LOCKSTEP_PLANTED(config_when_committed)) take_config({end_.index, config});
    advance_commit(now);  // a cluster of one
}

// S6: once a majority holds the adopted log, one entry of the own ballot, with which all before it commits.
void Core::append_no_op_when_ready(Now now, Effects& effects) {
    if (state_ != State::leader || no_op_.index != Index{}) return;
    const auto holds_adopted = [&](Voter voter) {
        if (voter == self()) return true;
        const Peer* peer = peer_of(voter.id);
        return peer != nullptr && peer->lane.state == Lane::State::open &&
               peer->lane.incarnation == voter.incarnation && peer->lane.landed.position >= adopted_end_.position;
    };
    if (!has_majority(config_, holds_adopted) && !LOCKSTEP_PLANTED(no_op_before_majority)) return;
    const Position new_end = end_.position + log::bytes_to_append(ring_, end_.position, 0);
    log_full_ = !make_room(now, new_end, true, effects);
    if (log_full_) return;
    log::append(ring_, end_, log::EntryKind::no_op, stamp(now), {});
    no_op_ = end_;
    commit_rose_ns_ = now.monotonic_ns;
    advance_commit(now);  // a cluster of one
}

// What a majority has reported as consumed. A lane is repaired from its follower's commit, which lags what has landed
// there: were the leader to overwrite that, the follower would be lost as soon as its lane breaks, and with it perhaps
// the last majority. A minority is not waited for.
Position Core::kept_for_majority() const {
    const auto consumed_by = [&](Voter voter) {
        if (voter == self()) return consumed();
        const Peer* peer = peer_of(voter.id);
        return peer != nullptr && peer->lane.incarnation == voter.incarnation ? peer->lane.consumed : Position{};
    };
    return majority_reached<Position>(config_, consumed_by);
}

// S11: bytes are overwritten only when they are applied here and no unfinished write reads them; a lane that would
// hold the ring up is ended, and its follower counts as detached. True if the log may grow to `new_end`; not in the
// step that ends a lane, whose bytes are the fabric's until that is carried out (F9).
bool Core::make_room(Now now, Position new_end, bool may_use_reserve, Effects& effects) {
    const std::uint64_t spare = may_use_reserve ? 0 : geometry_.reserve_bytes;
    Position free_until = std::min(consumed(), kept_for_majority());
    if (LOCKSTEP_PLANTED(kept_for_majority_off)) free_until = consumed();
    if (LOCKSTEP_PLANTED(ring_overwritten_unapplied)) free_until = end_.position;
    Position room_until = free_until + (ring_.bytes() - spare);
    if (new_end > room_until) return false;
    bool ended = false;
    for (Peer& peer : peers()) {
        if (peer.lane.state != Lane::State::open) continue;
        const Lane& lane = peer.lane;
        // Unfinished writes read what has not landed; and of one that was cut the ring still has to say what entries it
        // was, or the follower would never be told that they are committed.
        const Position held = LOCKSTEP_PLANTED(ring_reused_while_read) ? lane.posted : lane.landed.position;
        if (new_end > held + ring_.bytes()) {
            drop_lane(peer, Lane::State::none, effects);
            peer.prepare_again_ns = now.monotonic_ns + options_.election_timeout_ns;
            ended = true;
            continue;
        }
        room_until = std::min(room_until, held + ring_.bytes());
    }
    if (ended) return false;
    // Overwriting a lap ago: what is left of it is no longer whole.
    low_mark_ = std::max(low_mark_, Position{std::max(room_until.value, ring_.bytes()) - ring_.bytes()});
    if (!may_use_reserve) room_until_ = room_until;
    return true;
}

bool Core::flush(Now now, Effects& effects) {
    keep_log(now, false, effects);
    if (state_ != State::leader) return false;
    if (config_.voters.size() == 1) advance_commit(now);  // alone, nothing lands elsewhere that would
    start_read_round(effects);
    bool more = false;
    for (Peer& peer : peers())
        if (peer.lane.state == Lane::State::open) more |= flush_lane(now, peer, effects);
    if (waits_for_room_) post_notices(effects);
    post_probes(now, effects);
    set_deadline(now);
    return more;
}

// S9: a commit otherwise travels in the headers of the entries behind it. Where those wait for the room that its
// application would make, it goes by itself.
void Core::post_notices(Effects& effects) {
    waits_for_room_ = false;
    if (noticed_ >= commit_.index) return;
    noticed_ = commit_.index;
    for (const Peer& peer : peers())
        if (peer.lane.state == Lane::State::open) post_notice(peer, effects);
}

// A follower without room for more hears of commits by no entry; and if it lacks the newest committed one, the boards
// name nothing that it could act upon. With every heartbeat it is told how far what it has is committed.
void Core::notice_blocked(Effects& effects) {
    if (state_ != State::leader) return;
    for (const Peer& peer : peers())
        if (peer.lane.state == Lane::State::open && peer.lane.flights.empty() && peer.lane.posted < end_.position)
            post_notice(peer, effects);
}

// S9: names the highest committed entry that has landed there.
void Core::post_notice(const Peer& peer, Effects& effects) {
    const log::Point& there = peer.lane.landed.index < commit_.index ? peer.lane.landed : commit_;
    effects.push(effect::WriteReport{peer.id, transport::Report{.ballot = campaign_ballot_,
                                                                .incarnation = options_.incarnation,
                                                                .open_number = peer.lane.open_number,
                                                                .sequence = ++notice_sequence_,
                                                                .consumed = {},
                                                                .durable = {},
                                                                .committed = there.index,
                                                                .commit_checksum = there.checksum}});
}

bool Core::flush_lane(Now now, Peer& peer, Effects& effects) {
    for (int i = 0; i < kWritesPerTurn; ++i)
        if (!post_next(now, peer, effects)) return false;
    return true;
}

// Posts the next range that lies in one piece; false if there is none, or no room for it.
bool Core::post_next(Now now, Peer& peer, Effects& effects) {
    Lane& lane = peer.lane;
    if (lane.flights.size() >= kWritesUnderWay) return false;
    const Position from = lap_ends_.skip_pad_body(lane.posted);
    if (from >= end_.position) return false;
    // S11: only below the space that the follower has reported free; commands leave the reserve to no-ops.
    const bool needs_reserve = no_op_.index == Index{} || from < no_op_.position;
    const std::uint64_t spare = needs_reserve ? 0 : geometry_.reserve_bytes;
    Position space_end = lane.consumed + (ring_.bytes() - spare);
    if (LOCKSTEP_PLANTED(follower_space_ignored)) space_end = end_.position;
    const Position to = std::min({end_.position, lap_ends_.data_end(from), space_end,
                                  from + transport::kMaxTransferBytes});
    if (to <= from) return false;
    // A log can end in a pad, where a leader died between the two: its body is nothing to wait for.
    const bool whole = lap_ends_.skip_pad_body(to) == end_.position;
    lane.flights.push(Flight{.start = from, .upto = to, .write = true, .whole = whole,
                             .end = whole ? end_ : log::Point{}, .probe = 0, .posted_ns = now.monotonic_ns});
    lane.posted = to;
    ++writes_posted_;
    effects.push(effect::PostWrite{lane.id, from, to - from});
    return true;
}

void Core::on(Now now, const event::Landed& landed, Effects& effects) {
    const auto found = std::ranges::find_if(peers(), [&](const Peer& peer) {
        return peer.lane.state == Lane::State::open && peer.lane.id == landed.lane;
    });
    if (found == peers().end()) return;  // F5: a completion of an old lane
    Lane& lane = found->lane;
    LOCKSTEP_CHECK_OP(landed.count, <=, lane.flights.posted());
    while (lane.flights.finished() < landed.count) {
        const Flight& flight = lane.flights.front();
        if (flight.whole) lane.landed = flight.end;
        else if (flight.write) land_in_part(lane, flight.upto);
        if (flight.probe != 0) lane.probe_landed = flight.probe;
        lane.contact_ns = flight.posted_ns;
        lane.flights.pop();
    }
    advance_commit(now);
    append_no_op_when_ready(now, effects);
    finish_reads(effects);
}

// A write that was cut, by the follower's free space or the size of a transfer: what is whole of it counts.
void Core::land_in_part(Lane& lane, Position upto) {
    if (lane.landed.position < low_mark_) return;  // the ring no longer says what entries those were
    while (lane.landed.position < upto && lane.landed.index < end_.index) {
        const log::Point next = log::step_over_verified(ring_, lane.landed);
        const bool pad = log::is_pad(ring_, lane.landed.position);
        if ((pad ? lane.landed.position + sizeof(log::EntryHeader) : next.position) > upto) return;
        lane.landed = next;
    }
}

// S6: the highest index that a majority holds at or past, if it is at or after the own no-op. The own copy counts as
// soon as it is written, a follower's by what has landed on its newest lane, in this ballot; in durable mode each when
// it is on that one's disk.
void Core::advance_commit(Now now) {
    if (state_ != State::leader) return;
    if (no_op_.index == Index{} && !LOCKSTEP_PLANTED(old_ballot_counted)) return;
    struct Reached {
        log::Point point;
        bool operator<(const Reached& other) const { return point.position < other.point.position; }
    };
    const auto held_by = [&](Voter voter) -> Reached {
        if (voter == self()) return {counts_kept() && !LOCKSTEP_PLANTED(own_copy_before_disk) ? kept_ : end_};
        const Peer* peer = peer_of(voter.id);
        if (peer == nullptr || peer->lane.state != Lane::State::open) return {};
        if (peer->lane.incarnation != voter.incarnation && !LOCKSTEP_PLANTED(copy_of_another_life)) return {};
        if (!counts_kept()) return {peer->lane.landed};
        log::Point there;  // what is reported as durable is known by its position alone
        there.position = peer->lane.durable;
        return {there};
    };
    log::Point reached = majority_reached<Reached>(config_, held_by).point;
    if (reached.position < no_op_.position && !LOCKSTEP_PLANTED(old_ballot_counted)) return;
    if (reached.position <= commit_.position) return;
    if (counts_kept()) reached = point_at(reached.position);
    if (reached.position == commit_.position) return;
    set_commit(reached);
    commit_rose_ns_ = now.monotonic_ns;
}

// The last point of the own log at or before `position`, from the commit on.
log::Point Core::point_at(Position position) const {
    log::Point at = commit_;
    while (at.index < end_.index) {
        const log::Point next = log::step_over_verified(ring_, at);
        if (next.position > position) break;
        at = next;
    }
    return at;
}

void Core::set_commit(const log::Point& to) {
    LOCKSTEP_CHECK_OP(to.position.value, >=, commit_.position.value);
    LOCKSTEP_CHECK_OP(to.position.value, <=, end_.position.value);
    if (LOCKSTEP_PLANTED(config_when_committed) && newest_config().at <= to.index) committed_config_ = newest_config();
    commit_ = to;
    if (config_at_ > committed_config_.at && config_at_ <= commit_.index) committed_config_ = {config_at_, config_};
    if (committed_config_.at > config_at_) take_config(committed_config_);
    if (loss_ != Loss::none && made_up_for()) loss_ = Loss::none;
}

}  // namespace lockstep::core
