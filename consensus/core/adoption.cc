// Adoption (S4): the candidate makes its own ring equal to the best log among the promises.
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <cstring>

namespace lockstep::core {

namespace {

constexpr std::size_t kReadsAtOnce = 4;

}  // namespace

// `best` is null where this replica's own log is the best.
void Core::adopt(Now now, Peer* best, Effects& effects) {
    if (best == nullptr) {
        // S5. Others decided where one has come back as another life, with less than it promised before.
        if (!own_config_.config.names(self()) || own_config_.config != deciding_)
            return end_campaign(now, options_.election_timeout_ns);
        end_ = *own_last_;
        take_config(own_config_);
        become_leader(now, effects);
        return;
    }
    if (best->promise->low_mark > commit_.position) {
        // The best log's owner no longer has what this replica lacks; a replica that is further may adopt.
        if (LOCKSTEP_PLANTED(adoption_impossible_retried)) end_campaign(now, retry_pause_ns_);
        else give_way(now, *best, effects);
        return;
    }
    if (adoption_.reads_open != 0) {
        // The scratch ring still belongs to reads of a campaign before (F9 holds for reads as well).
        end_campaign(now, retry_pause_ns_);
        return;
    }
    if (LOCKSTEP_PLANTED(adoption_clears_own_tail)) std::memset(ring_.at(commit_.position), 0, log::kEntryAlignment);
    state_ = State::adopting;
    adoption_ = Adoption{.source = best->id,
                         .target = best->promise->last,
                         .source_commit = best->promise->commit,
                         .next_read = commit_.position,
                         .reads_open = 0,
                         .failed = false,
                         .verified = false,
                         .config = {},
                         .installed = commit_,
                         .differs = false};
    read_more(effects);
}

// Reads go straight into the scratch ring, at the place where the bytes stand in every ring.
void Core::read_more(Effects& effects) {
    Adoption& a = adoption_;
    while (a.reads_open < kReadsAtOnce && a.next_read < a.target.position) {
        const std::uint64_t bytes = std::min({a.target.position - a.next_read, ring_.bytes_to_lap_end(a.next_read),
                                              transport::kMaxTransferBytes});
        effects.push(effect::ReadRing{ReadId{++last_read_}, a.source, a.next_read, bytes});
        a.next_read = a.next_read + bytes;
        ++a.reads_open;
    }
}

void Core::on(Now now, const event::RingRead& read, Effects& effects) {
    Adoption& a = adoption_;
    LOCKSTEP_CHECK_OP(a.reads_open, >, 0);
    --a.reads_open;
    if (!read.ok) a.failed = true;
    if (state_ != State::adopting) return;
    campaign_ends_ns_ = std::max(campaign_ends_ns_, now.monotonic_ns + options_.election_timeout_ns);
    if (!a.failed) read_more(effects);
    if (a.reads_open != 0) return;
    if (a.failed || !verify_adopted()) {
        // Torn by a writer with a newer promise than ours, or the source is gone (F6).
        end_campaign(now, retry_pause_ns_);
        return;
    }
    if (LOCKSTEP_PLANTED(adopted_config_ignored)) a.config = own_config_;
    if (!a.config.config.names(self())) return end_campaign(now, options_.election_timeout_ns);  // S5
    if (a.config.config != deciding_) {
        // S4, S5: the voters that this log names decide, and the choice is made again.
        state_ = State::preparing;
        decided_by_ = a.source;
        return decide(now, a.config.config, effects);
    }
    a.verified = true;
    install_adopted(now, effects);
}


// Whether what was read chains from the own commit to exactly what the promise named, through the source's commit.
bool Core::verify_adopted() {
    Adoption& a = adoption_;
    bool commit_met = a.source_commit.index <= commit_.index;
    log::Point at = commit_;
    a.config = committed_config_;
    while (at.index < a.target.index) {
        const auto entry = log::next_entry(scratch_, at, log::kNoLimit);
        if (!entry && LOCKSTEP_PLANTED(adoption_unverified)) a.target = at;
        if (!entry) return LOCKSTEP_PLANTED(adoption_unverified);
        at = entry->end;
        if (entry->header.kind == log::EntryKind::config) a.config = config_in(entry->payload, entry->end.index);
        if (at.index == a.source_commit.index) {
            if (at.checksum != a.source_commit.checksum) return false;
            commit_met = true;
        }
    }
    return commit_met && at == a.target;
}

// Copies from the first entry that differs, as far as bytes that are applied, and on disk, make room (S11). What the
// source knew to be committed raises the own commit on the way, so that apply goes on and makes more room; called again
// as it does.
void Core::install_adopted(Now now, Effects& effects) {
    Adoption& a = adoption_;
    const Position room = room_end();
    while (a.installed.index < a.target.index) {
        const auto entry = log::next_entry(scratch_, a.installed, log::kNoLimit);
        LOCKSTEP_CHECK(entry.has_value());
        if (!a.differs) {
            const auto own = log::next_entry(ring_, a.installed, log::kNoLimit);
            a.differs = !own || own->header.checksum != entry->header.checksum;
            if (a.differs) lap_ends_.forget_from(a.installed.position);
        }
        if (a.differs) {
            if (entry->end.position > room) break;
            const bool pad = entry->header.kind == log::EntryKind::pad;
            const std::uint64_t bytes = pad ? sizeof(log::EntryHeader) : entry->end.position - entry->start;
            std::memcpy(ring_.at(entry->start), scratch_.at(entry->start), bytes);
            if (pad) lap_ends_.note_pad(entry->start);
            low_mark_ = std::max(low_mark_,
                                 Position{std::max(entry->end.position.value, ring_.bytes()) - ring_.bytes()});
        }
        a.installed = entry->end;
    }
    end_ = a.installed;
    commit_up_to(std::min(a.source_commit.index, a.installed.index));
    if (a.installed.index < a.target.index) {
        campaign_ends_ns_ = std::max(campaign_ends_ns_, now.monotonic_ns + options_.election_timeout_ns);
        return;
    }
    take_config(a.config);
    become_leader(now, effects);
}

}  // namespace lockstep::core
