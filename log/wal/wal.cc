#include "log/wal/wal.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::log {

namespace {

constexpr FileHandle kHardStateFile = 0;
constexpr FileHandle kSegmentFile = 1;
constexpr FileHandle kSpareFile = 2;

constexpr std::array<std::byte, kEntryAlignment> kBlank{};

template <class Block>
BytesView bytes_of(const Block& block) {
    return std::as_bytes(std::span(&block, 1));
}

}  // namespace

Wal::Wal(const Recovered& recovered, const Ring& copy)
    : copy_(copy),
      kept_(recovered.hard),
      wanted_(recovered.hard),
      hard_sequence_(recovered.hard_sequence),
      mirror_owed_(!recovered.hard_in_both_slots),
      durable_(recovered.end),
      appended_(recovered.end),
      holds_rest_(recovered.found == Damage::corrupt),
      segments_(recovered.segments),
      leftovers_(recovered.leftovers),
      generation_(recovered.floor.generation),
      committed_(std::min(recovered.floor.committed, recovered.end.index)),
      committed_kept_(committed_) {
    LOCKSTEP_CHECK_OP(copy.bytes(), ==, recovered.hard.ring_bytes);
    LOCKSTEP_CHECK_OP(copy.genesis(), ==, recovered.hard.genesis);
    wanted_.base = recovered.base;
    wanted_.owed = recovered.owed;
    // The damage is on disk before anything is cut that shows it.
    hard_dirty_ = wanted_.base != kept_.base || wanted_.owed != kept_.owed;
    if (holds_rest_) return;
    cut_ = recovered.end;
    hard_dirty_ |= kept_.floor > durable_.position;
}

// -- What is to be kept ---------------------------------------------------------------------------------------------

Taken Wal::append(const Ring& ring, Position end) {
    LOCKSTEP_CHECK_OP(ring.bytes(), ==, copy_.bytes());
    LOCKSTEP_CHECK_OP(end.value, >=, appended_.position.value);
    // The batch in flight reads its bytes from the copy: what replaces them waits.
    if (overtaken_) return end == appended_.position ? Taken::all : Taken::full;
    const Position room_end = durable_.position + copy_.bytes();
    const Position until = std::min(end, room_end);
    for (Position at = appended_.position; at < until;) {
        const std::uint64_t bytes = std::min(until - at, ring.bytes_to_lap_end(at));
        std::memcpy(copy_.at(at), ring.at(at), bytes);
        at = at + bytes;
    }
    while (appended_.position < end) {
        const auto entry = next_entry(copy_, appended_, until);
        if (!entry) return until < end ? Taken::full : Taken::broken;
        if (entry->end.position > room_end) return Taken::full;
        appended_ = entry->end;
        if (holds_rest_) let_rest_go();
        if (appended_.position == copy_.lap_start(appended_.position)) {
            // There is one lap's end at most within a ring's length.
            LOCKSTEP_CHECK(!lap_end_ || lap_end_->position <= durable_.position);
            lap_end_ = appended_;
            const bool pad = entry->header.kind == EntryKind::pad;
            lap_data_end_ = pad ? entry->start + kEntryAlignment : appended_.position;
        }
        const Owed& owed = wanted_.owed;
        if (owed.damage != Damage::none && appended_.position == owed.end.position)
            owed_reached_ = appended_.index == owed.end.index && appended_.checksum == owed.end.checksum;
    }
    return Taken::all;
}

void Wal::promise(Ballot ballot, Incarnation candidate) {
    LOCKSTEP_CHECK_OP(ballot.value, >=, wanted_.promised.value);
    if (ballot == wanted_.promised && candidate == wanted_.promised_to) return;
    wanted_.promised = ballot;
    wanted_.promised_to = candidate;
    hard_dirty_ = true;
}

void Wal::commit(Index upto, bool now) {
    committed_ = std::max(committed_, std::min(upto, appended_.index));
    floor_wanted_ |= now;
}

// What comes in its place is a leader's, who has all of it that counts (S14).
void Wal::let_rest_go() {
    holds_rest_ = false;
    cut_ = durable_;
    cut_step_ = CutStep::lower_floor;
    hard_dirty_ |= kept_.floor > durable_.position;
}

void Wal::drop_behind(const Point& at) {
    appended_ = at;
    if (lap_end_ && lap_end_->position > at.position) lap_end_.reset();
    if (at.position < wanted_.owed.end.position) owed_reached_ = false;
}

void Wal::truncate(const Point& at) {
    LOCKSTEP_CHECK_OP(at.position.value, <=, appended_.position.value);
    LOCKSTEP_CHECK_OP(at.position.value, >=, wanted_.base.position.value);
    drop_behind(at);
    const bool in_flight = doing_ == Doing::batch && !batch_of_old_era_ && batch_end_.position > at.position;
    if (in_flight) overtaken_ = true;
    if (!in_flight && at.position >= durable_.position) return;  // nothing of it has gone to disk
    holds_rest_ = false;
    if (at.position < durable_.position) durable_ = at;
    if (cut_ && cut_->position <= at.position) return;
    cut_ = at;
    cut_step_ = CutStep::lower_floor;
    const bool floor_in_flight = doing_ == Doing::hard_state && writing_.floor > at.position;
    if (kept_.floor > at.position || floor_in_flight) hard_dirty_ = true;
}

bool Wal::release(Position below) {
    if (cut_ || holds_rest_) return false;
    below = std::min(below, durable_.position);
    bool moved = false;
    while (segments_.size() > 1 && segments_.front().first + copy_.bytes() <= below) {
        // Behind what recovery has left: a file named as the spare goes before there is another spare.
        leftovers_.insert(leftovers_.begin(), {segment_name(wanted_.era, segments_.front().first), true});
        segments_.erase(segments_.begin());
        moved = true;
    }
    if (!moved) return true;
    wanted_.base = segments_.front().start;
    hard_dirty_ = true;  // and what was released goes only behind that
    return true;
}

void Wal::start_anew(const Point& base) {
    if (doing_ == Doing::batch) {
        overtaken_ = true;
        batch_of_old_era_ = true;
    }
    if (doing_ == Doing::remove_segment) segments_.pop_back();
    // Not to be used again: bytes of the same stream at the same place could pass for the new log's.
    for (const Segment& segment : segments_) leftovers_.push_back({segment_name(wanted_.era, segment.first), false});
    segments_.clear();
    open_segment_.reset();
    cut_.reset();
    holds_rest_ = false;
    lap_end_.reset();
    owed_reached_ = false;
    ++wanted_.era;
    wanted_.base = base;
    durable_ = base;
    appended_ = base;
    hard_dirty_ = true;
}

void Wal::forgive() {
    if (wanted_.owed.damage == Damage::none) return;
    wanted_.owed = {};
    hard_dirty_ = true;
}

// -- Jobs -----------------------------------------------------------------------------------------------------------

const DiskJob* Wal::next() {
    if (doing_ != Doing::nothing || stopped_) return nullptr;
    job_.count_ = 0;
    if (holds_rest_) return plan_hard_state() || plan_clean() ? &job_ : nullptr;
    if (plan_hard_state() || plan_cut() || plan_clean() || plan_spare() || plan_batch() || plan_floor()) return &job_;
    return nullptr;
}

// Into the slot that does not count; then, as soon as nothing is more urgent, into the other one too, so that rot in
// one slot never brings back an older promise.
bool Wal::plan_hard_state() {
    if (!hard_dirty_ && !mirror_owed_) return false;
    if (hard_dirty_) {
        writing_ = wanted_;
        if (!holds_rest_) writing_.floor = durable_.position;
    } else {
        writing_ = kept_;
    }
    hard_block_ = block_of(writing_, hard_sequence_ + 1);
    if (!hard_open_) job_.push(DiskOperation::open(kHardStateFile, kHardStateName));
    const std::uint64_t slot = LOCKSTEP_PLANTED(hard_state_in_place) ? 0 : hard_sequence_ + 1;
    job_.push(DiskOperation::write(kHardStateFile, hard_state_offset(slot), bytes_of(hard_block_)));
    job_.push(DiskOperation::sync(kHardStateFile));
    mirror_owed_ = hard_dirty_;
    hard_dirty_ = false;
    doing_ = Doing::hard_state;
    return true;
}

Position Wal::lap_of_end(Position end) const {
    return copy_.lap_start(end == wanted_.base.position ? end : Position{end.value - 1});
}

void Wal::open_segment(Position first) {
    if (open_segment_ == first) return;
    job_.push(DiskOperation::open(kSegmentFile, segment_name(wanted_.era, first)));
    open_segment_ = first;
}

void Wal::write_floor(Position begin, const Point& end, Position first) {
    committed_writing_ = std::min(committed_, end.index);
    const Floor floor{.generation = ++generation_, .begin = begin, .end = end, .committed = committed_writing_};
    FloorBlock& block = floor_blocks_[generation_ % 2];
    block = block_of(floor, wanted_.cluster_id, wanted_.era, first);
    job_.push(DiskOperation::write(kSegmentFile, floor_offset(generation_), bytes_of(block)));
}

// The floor first, then segments from the tail, each one gone for good before the next, then the entry at the cut.
bool Wal::plan_cut() {
    if (!cut_) return false;
    const Position target = lap_of_end(cut_->position);
    const bool there = std::ranges::any_of(segments_, [&](const Segment& segment) { return segment.first == target; });
    step_of_ = cut_;
    if (cut_step_ == CutStep::lower_floor && there) {
        open_segment(target);
        // Both, so that one that cannot be read is mended, too.
        write_floor(cut_->position, *cut_, target);
        write_floor(cut_->position, *cut_, target);
        job_.push(DiskOperation::sync(kSegmentFile));
        doing_ = Doing::lower_floor;
        return true;
    }
    if (LOCKSTEP_PLANTED(truncated_from_the_front)) {
        const auto behind = std::ranges::upper_bound(segments_, target, {}, &Segment::first);
        if (behind != segments_.end()) std::rotate(behind, behind + 1, segments_.end());
    }
    if (!segments_.empty() && segments_.back().first > target) {
        const Position last = segments_.back().first;
        if (open_segment_ == last) {
            job_.push(DiskOperation::close(kSegmentFile));
            open_segment_.reset();
        }
        job_.push(DiskOperation::remove(segment_name(wanted_.era, last)));
        job_.push(DiskOperation::sync_folder());
        doing_ = Doing::remove_segment;
        return true;
    }
    if (there && cut_->position < target + copy_.bytes()) {
        open_segment(target);
        job_.push(DiskOperation::write(kSegmentFile, kSegmentDataOffset + (cut_->position - target), kBlank));
        job_.push(DiskOperation::sync(kSegmentFile));
        doing_ = Doing::blank;
        return true;
    }
    cut_.reset();
    cut_step_ = CutStep::lower_floor;
    return false;
}

bool Wal::plan_clean() {
    if (leftovers_.empty()) return false;
    const Leftover leftover = leftovers_.back();
    leftovers_.pop_back();
    // A file whose blocks the disk has written once takes less to sync than one that was only allocated.
    if (leftover.reusable && !spare_) {
        job_.push(DiskOperation::rename(leftover.name, kSpareName));
        spare_ = true;
    } else {
        job_.push(DiskOperation::remove(leftover.name));
    }
    job_.push(DiskOperation::sync_folder());
    doing_ = Doing::clean;
    return true;
}

bool Wal::segment_needed() const {
    if (durable_.position == appended_.position) return false;
    return segments_.empty() || segments_.back().first < copy_.lap_start(durable_.position);
}

// Made ahead, when half of the newest segment is full, so that no batch waits for it.
bool Wal::plan_spare() {
    if (spare_) return false;
    const bool soon = segments_.empty() || durable_.position - segments_.back().first >= copy_.bytes() / 2;
    if (!soon) return false;
    job_.push(DiskOperation::create(kSpareFile, kNewSpareName, segment_bytes(copy_.bytes())));
    job_.push(DiskOperation::sync(kSpareFile));
    job_.push(DiskOperation::rename(kNewSpareName, kSpareName));
    job_.push(DiskOperation::sync_folder());
    job_.push(DiskOperation::close(kSpareFile));
    spare_ = true;
    doing_ = Doing::spare;
    return true;
}

bool Wal::plan_batch() {
    if (durable_.position == appended_.position) return false;
    if (appended_.position - durable_.position < gather_) return false;
    const Point begin = durable_;
    const bool at_lap_end = lap_end_ && lap_end_->position > begin.position;
    batch_end_ = at_lap_end ? *lap_end_ : appended_;
    const Position data_end = at_lap_end ? lap_data_end_ : appended_.position;
    const Position first = copy_.lap_start(begin.position);
    fresh_batch_ = segment_needed();
    if (fresh_batch_) {
        LOCKSTEP_CHECK(spare_);
        job_.push(DiskOperation::rename(kSpareName, segment_name(wanted_.era, first)));
        spare_ = false;
        segments_.push_back({first, begin});
        open_segment(first);
        segment_block_ = block_of(SegmentHeader{.cluster_id = wanted_.cluster_id,
                                                .replica = wanted_.replica,
                                                .ring_bytes = wanted_.ring_bytes,
                                                .era = wanted_.era,
                                                .first = first,
                                                .start = begin});
        job_.push(DiskOperation::write(kSegmentFile, 0, bytes_of(segment_block_)));
    } else {
        open_segment(first);
    }
    const BytesView data(copy_.at(begin.position), data_end - begin.position);
    job_.push(DiskOperation::write(kSegmentFile, kSegmentDataOffset + (begin.position - first), data));
    write_floor(begin.position, LOCKSTEP_PLANTED(floor_behind_acknowledged) ? begin : batch_end_, first);
    job_.push(DiskOperation::sync(kSegmentFile));
    if (fresh_batch_) job_.push(DiskOperation::sync_folder());
    doing_ = Doing::batch;
    return true;
}

// Nothing new to write but how far the log is committed.
bool Wal::plan_floor() {
    if (!std::exchange(floor_wanted_, false) || std::min(committed_, durable_.index) <= committed_kept_) return false;
    const Position first = lap_of_end(durable_.position);
    if (segments_.empty() || segments_.back().first != first) return false;
    open_segment(first);
    write_floor(durable_.position, durable_, first);
    job_.push(DiskOperation::sync(kSegmentFile));
    doing_ = Doing::floor;
    return true;
}

// -- How they ended -------------------------------------------------------------------------------------------------

void Wal::finish(const Result<void>& outcome) {
    LOCKSTEP_CHECK(doing_ != Doing::nothing);
    const Doing done = std::exchange(doing_, Doing::nothing);
    if (!outcome && !LOCKSTEP_PLANTED(failed_sync_ignored)) {
        stopped_ = Error(outcome.error()).within("the log on disk has stopped for good");
        return;
    }
    switch (done) {
        case Doing::nothing: break;
        case Doing::hard_state:
            kept_ = writing_;
            ++hard_sequence_;
            hard_open_ = true;
            break;
        case Doing::lower_floor:
        case Doing::remove_segment:
        case Doing::blank: doing_ = done; finish_cut_step(); break;
        case Doing::clean:
        case Doing::spare: break;
        case Doing::batch: finish_batch(); break;
        case Doing::floor: committed_kept_ = std::max(committed_kept_, committed_writing_); break;
    }
}

void Wal::finish_cut_step() {
    const Doing done = std::exchange(doing_, Doing::nothing);
    // Another cut, or another era, has come meanwhile: it starts from its beginning.
    const bool current = cut_ && step_of_ && *cut_ == *step_of_;
    if (done == Doing::remove_segment) {
        if (!segments_.empty()) segments_.pop_back();
        return;
    }
    if (!current) return;
    if (done == Doing::lower_floor) {
        cut_step_ = CutStep::remove;
    } else {
        cut_.reset();
        cut_step_ = CutStep::lower_floor;
    }
}

void Wal::finish_batch() {
    ++batches_;
    overtaken_ = false;
    if (std::exchange(batch_of_old_era_, false)) return;
    if (cut_ && cut_->position < batch_end_.position) {
        // What was cut while it was written is on disk, and stays unacknowledged; the rest counts.
        if (durable_.position < cut_->position) durable_ = *cut_;
        return;
    }
    durable_ = batch_end_;
    // Its floor tells of the segment, should that be lost whole.
    if (fresh_batch_) hard_dirty_ = true;
    committed_kept_ = std::max(committed_kept_, committed_writing_);
    if (lap_end_ && lap_end_->position <= durable_.position) lap_end_.reset();
    if (owed_reached_ && durable_.position >= wanted_.owed.end.position) forgive();
}

}  // namespace lockstep::log
