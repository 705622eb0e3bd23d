// Catching up where no lane can help: the leader's ring no longer reaches back to this replica's commit (S6). The log
// is fetched from the leader's disk, or a snapshot where that does not reach back either. All of it is committed where
// it comes from, and counts for nothing here but as that: no lane stands meanwhile, and the leader opens one, with an
// answer as in S2, when this replica's board shows that it has come far enough.
#include "consensus/core/core.h"

#include "log/planted.h"

#include <algorithm>
#include <cstring>

namespace lockstep::core {

void Core::say_behind(Peer& peer, Effects& effects) {
    effects.push(effect::Send{peer.id, Behind{genesis_, campaign_ballot_, peer.lane.open_number, low_mark_}});
}

void Core::receive(Now, const Peer& from, const Behind& message, Effects& effects) {
    if (!formation_kept_ || message.genesis != genesis_ || message.ballot.leader() != from.id) return;
    // The promise stands, and the lane of it, if there was one, is over: as in S1 only a higher open number acts.
    if (message.ballot != promised_ || from.incarnation != promised_to_ || asked_promise_.serial != 0) return;
    if (message.open_number <= incoming_.open_number || commit_.position >= message.low_mark) return;
    if (incoming_.state == Incoming::State::fencing || incoming_.state == Incoming::State::opening) return;
    end_fetch(effects);
    look_again_ = false;
    incoming_.holder = from.id;
    incoming_.holder_incarnation = from.incarnation;
    incoming_.open_number = message.open_number;
    incoming_.state = Incoming::State::fencing;
    incoming_.behind = true;
    effects.push(effect::Fence{++incoming_.serial});
}

// How far the own ring may be written without a lane.
Position Core::room_end() const { return done_with() + ring_.bytes(); }

void Core::fetch(Effects& effects) {
    // F9 holds for reads as well: those of a campaign before may still write the scratch ring.
    if (adoption_.reads_open != 0) return;
    effects.push(effect::Fetch{fetch_serial_, incoming_.holder, commit_, room_end()});
}

void Core::end_fetch(Effects& effects) {
    if (!catching_up()) return;
    incoming_.state = Incoming::State::none;
    effects.push(effect::EndFetch{});
}

// Entry by entry, as far as they are whole, and from the first one on that differs from the own: what stands there was
// accepted, and is perhaps part of what a majority holds.
void Core::on(Now, const event::LogFetched& fetched, Effects& effects) {
    if (!catching_up() || fetched.serial != fetch_serial_) return;
    const Position room = room_end();
    log::Point at = commit_;
    bool differs = false;
    while (const auto entry = log::next_entry(scratch_, at, fetched.upto)) {
        if (entry->end.position > room) break;
        if (!differs) {
            const auto own = log::next_entry(ring_, at, log::kNoLimit);
            differs = !own || own->header.checksum != entry->header.checksum;
        }
        if (differs) {
            const bool pad = entry->header.kind == log::EntryKind::pad;
            std::memcpy(ring_.at(entry->start), scratch_.at(entry->start),
                        pad ? sizeof(log::EntryHeader) : entry->end.position - entry->start);
            low_mark_ = std::max(low_mark_,
                                 Position{std::max(entry->end.position.value, ring_.bytes()) - ring_.bytes()});
        }
        at = entry->end;
    }
    if (at.index > commit_.index) {
        if (differs) lap_ends_.forget_from(commit_.position);
        end_ = at;
        commit_up_to(at.index);
    }
    fetch(effects);
}

void Core::on(Now, const event::SnapshotFetched& fetched, Effects& effects) {
    if (!catching_up() || fetched.serial != fetch_serial_) return;
    if (fetched.at.index > commit_.index) {
        // Where the own log has that very entry, it is a certificate (S9), and what stands above it was accepted and
        // has to stay.
        if (own_log_has(fetched.at.index, fetched.at.checksum)) commit_up_to(fetched.at.index);
        else install(fetched.at, fetched.config, effects);
    }
    fetch(effects);
}

// If so it is believed up to there.
bool Core::own_log_has(Index index, std::uint64_t checksum) {
    log::Point own = commit_;
    while (own.index < index) {
        const auto entry = log::next_entry(ring_, own, log::kNoLimit);
        if (!entry) return false;
        own = entry->end;
    }
    if (own.checksum != checksum && !LOCKSTEP_PLANTED(conflicting_tail_kept)) return false;
    end_ = own;
    return true;
}

// What was accepted above the commit is of another log, or ends before the snapshot does: it goes (S8, S10). On disk
// the old log stays until the new one's beginning is there; until then a restart would bring it back, and nothing above
// it has been reported.
void Core::install(const log::Point& at, const Config& config, Effects& effects) {
    effects.push(effect::InstallSnapshot{at});
    ++generation_;
    to_keep_ = end_ = at;
    installed_ = at;
    low_mark_ = at.position;
    lap_ends_.forget_from({});
    looked_limit_ = {};
    committed_config_ = {at.index, config};
    take_config(committed_config_);
    set_commit(at);
    applied_ = at;
}

}  // namespace lockstep::core
