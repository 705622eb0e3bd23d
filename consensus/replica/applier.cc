#include "consensus/replica/applier.h"

#include "log/check.h"

#include <bit>
#include <cstring>
#include <utility>

namespace lockstep::replica {

Applier::Applier(StateMachine& state_machine)
    : state_machine_(state_machine), expected_(kMaxEntries), expected_mask_(kMaxEntries - 1), batch_(kMaxEntries) {
    static_assert(std::has_single_bit(kMaxEntries));
}

void Applier::grow() {
    std::vector<Expected> larger(expected_.size() * 2);
    for (std::uint64_t number = expected_begin_; number != expected_end_; ++number)
        larger[number & (larger.size() - 1)] = std::move(expected(number));
    expected_ = std::move(larger);
    expected_mask_ = expected_.size() - 1;
}

log::Point Applier::apply_some(const core::Core& core) {
    const log::Ring& ring = core.ring();
    const Index commit = core.commit().index;
    log::Point at = core.applied();
    std::size_t count = 0;
    std::size_t bytes = 0;
    while (at.index < commit && count < kMaxEntries && bytes < kMaxBytes) {
        const std::byte* start = ring.at(at.position);
        log::EntryHeader header;
        at = log::step_over_verified(ring, at, header);
        if (header.kind != log::EntryKind::command) continue;
        bytes += header.length;
        batch_[count++] = {at.index, at.ballot, at.timestamp_ns, BytesView(start + sizeof header, header.length)};
    }
    if (count > 0) {
        const std::span<const Entry> batch(batch_.data(), count);
        replies_.begin(count, expected_begin_ != expected_end_);
        state_machine_.apply(batch, replies_);
        answer(batch);
    }
    return at;
}

// Proposals commit in the order in which they were appended, so the oldest expected one is met first.
void Applier::answer(std::span<const Entry> batch) {
    for (std::size_t i = 0; i < batch.size() && expected_begin_ != expected_end_; ++i) {
        Expected& oldest = expected(expected_begin_);
        if (oldest.index != batch[i].index) {
            LOCKSTEP_CHECK_OP(oldest.index.value, >, batch[i].index.value);
            continue;
        }
        // Called where it lies, which may be filled anew only once it is let go.
        oldest.done(Outcome{Fate::applied, Reason::none, {}, batch[i].index, replies_.at(i)});
        oldest.done = nullptr;
        ++expected_begin_;
    }
}

void Applier::lose_all() {
    for (; expected_begin_ != expected_end_; ++expected_begin_) {
        Expected& oldest = expected(expected_begin_);
        oldest.done(Outcome{});
        oldest.done = nullptr;
    }
}

}  // namespace lockstep::replica
