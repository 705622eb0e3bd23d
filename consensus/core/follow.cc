// A follower's ring: what is believed of it, what of it is committed, what space is reported free (S8, S9, S10).
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <utility>

namespace lockstep::core {

namespace {

// A look ends here and goes on in the next turn, so that a long catch-up does not stop the heartbeats.
constexpr int kEntriesPerLook = 16'384;

}  // namespace

void Core::on(Now, const event::Look& look, Effects&) {
    if (state_ == State::leader || incoming_.state != Incoming::State::open || incoming_.holder == options_.id) return;
    look_again_ = false;
    // Where the fabric can tell how far bytes have come, nothing new is known before more have.
    if (look.limit == looked_limit_ && look.limit != log::kNoLimit) return;
    looked_limit_ = look.limit;

    log::Point at = end_;
    Index certified;
    std::optional<ConfigAt> config;  // not believed yet
    for (int entries = 0;; ++entries) {
        if (entries >= kEntriesPerLook && at == end_) {
            look_again_ = true;
            looked_limit_ = {};
            break;
        }
        const auto entry = log::next_entry(ring_, at, look.limit);
        if (!entry) break;
        if (entry->header.kind == log::EntryKind::config) {
            config = config_in_ring(at, *entry);
            if (!config) break;
        }
        at = entry->end;
        certified = std::max(certified, Index{entry->header.commit});
        // S8: believed up to the last entry of the promised ballot. What stands behind it may be of an older ballot,
        // and about to be overwritten.
        if (at.ballot == promised_ || LOCKSTEP_PLANTED(tail_believed)) {
            end_ = at;
            if (config && !LOCKSTEP_PLANTED(config_when_committed)) take_config(*std::exchange(config, std::nullopt));
        }
        if (LOCKSTEP_PLANTED(certificate_needs_own_ballot) && at.ballot != promised_) continue;
        if (at.index == notice_index_ && at.checksum == notice_checksum_) certified = at.index;
        if (at.index == notice_index_ && LOCKSTEP_PLANTED(certificate_unchecked)) certified = at.index;
    }
    // S9: a commit is true of the chain that names it, whatever the ballot of the entries, and lifts the belief.
    if (certified > commit_.index) {
        const log::Point believed = end_;
        end_ = at;
        commit_up_to(certified);
        end_ = std::max(believed, commit_, [](const log::Point& a, const log::Point& b) { return a.index < b.index; });
    }
    take_certificate(notice_index_, notice_checksum_);
}

// S9: acted upon only where the own verified chain has that checksum at that index.
void Core::take_certificate(Index index, std::uint64_t checksum) {
    if (index <= commit_.index) return;
    if (index > end_.index && catching_up()) {
        // The ring stands still, and is not looked at by itself.
        if (own_log_has(index, checksum)) commit_up_to(index);
        return;
    }
    if (index > end_.index) {
        // Perhaps it is already there, but not believed: the next look tells.
        if (index != notice_index_) looked_limit_ = {};
        notice_index_ = index;
        notice_checksum_ = checksum;
        return;
    }
    log::Point at = commit_;
    while (at.index < index) at = log::step_over_verified(ring_, at);
    if (LOCKSTEP_PLANTED(certificate_needs_own_ballot) && at.ballot != promised_) return;
    if (at.checksum == checksum || LOCKSTEP_PLANTED(certificate_unchecked)) commit_up_to(index);
}

// `index` is committed in the chain that runs up to end_. Pads are remembered here and not when they are first seen:
// one that is not committed may be replaced by entries that fill the lap.
void Core::commit_up_to(Index index) {
    log::Point at = commit_;
    while (at.index < index && at.index < end_.index) {
        const Position start = at.position;
        log::EntryHeader header;
        at = log::step_over_verified(ring_, at, header);
        if (header.kind == log::EntryKind::pad) lap_ends_.note_pad(start);
        if (header.kind == log::EntryKind::config)
            committed_config_ = config_in(BytesView(ring_.at(start) + sizeof header, header.length), at.index);
    }
    if (at.index > commit_.index) set_commit(at);
}

// What of the own ring may be overwritten: what is done with, less a tail kept for others to read and repair from.
Position Core::consumed() const {
    return {std::max(done_with().value, geometry_.kept_tail_bytes) - geometry_.kept_tail_bytes};
}

// With every heartbeat, since a report can be lost; between them when enough has come together.
void Core::report_consumed(bool heartbeat, Effects& effects) {
    if (state_ == State::leader || incoming_.state != Incoming::State::open) return;
    const Position now_consumed = consumed();
    const bool much = now_consumed > incoming_.reported_consumed &&
                      now_consumed - incoming_.reported_consumed >= ring_.bytes() / 16;
    if (!heartbeat && !much) return;
    incoming_.reported_consumed = std::max(incoming_.reported_consumed, now_consumed);
    // From here on the lane's holder may write over it (S6).
    if (!LOCKSTEP_PLANTED(low_mark_not_raised)) low_mark_ = std::max(low_mark_, incoming_.reported_consumed);
    effects.push(effect::WriteReport{incoming_.holder, transport::Report{.ballot = promised_,
                                                                         .incarnation = options_.incarnation,
                                                                         .open_number = incoming_.open_number,
                                                                         .sequence = ++incoming_.report_sequence,
                                                                         .consumed = incoming_.reported_consumed,
                                                                         .durable = kept_.position,
                                                                         .committed = commit_.index,
                                                                         .commit_checksum = commit_.checksum}});
}

// From a leader it is a commit notice. From a follower (S10) it counts only about the lane that is open now, and if it
// is newer than what is known.
void Core::on(Now now, const event::Reported& reported, Effects& effects) {
    Peer* peer = peer_of(reported.peer);
    if (peer == nullptr) return;
    const transport::Report& report = reported.report;
    if (state_ != State::leader && report.ballot == promised_ && incoming_.holder == peer->id)
        return take_certificate(report.committed, report.commit_checksum);
    if (state_ != State::leader || peer->lane.state != Lane::State::open) return;
    Lane& lane = peer->lane;
    if (report.ballot != campaign_ballot_ || report.incarnation != lane.incarnation ||
        report.open_number != lane.open_number || report.sequence <= lane.report_sequence)
        return;
    lane.report_sequence = report.sequence;
    lane.consumed = std::max(lane.consumed, report.consumed);
    if (!counts_kept() || report.durable <= lane.durable) return;
    lane.durable = report.durable;
    advance_commit(now);
    finish_reads(effects);
}

void Core::on(Now now, const event::Applied& applied, Effects& effects) {
    LOCKSTEP_CHECK_OP(applied.to.index.value, >=, applied_.index.value);
    LOCKSTEP_CHECK_OP(applied.to.index.value, <=, commit_.index.value);
    const Index before = std::exchange(applied_, applied.to).index;
    report_consumed(false, effects);
    if (state_ == State::leader) {
        if (before < config_at_) replace_lost_voters(now, effects);  // one change done, perhaps there is another
        append_no_op_when_ready(now, effects);
        finish_reads(effects);
    } else if (state_ == State::adopting && adoption_.verified) {
        install_adopted(now, effects);
    } else if (catching_up()) {
        fetch(effects);  // there is more room now
    }
}

}  // namespace lockstep::core
