#include "consensus/replica/applier.h"

#include "log/check.h"

#include <cstring>
#include <utility>

namespace lockstep::replica {

Applier::Applier(StateMachine& state_machine) : state_machine_(state_machine), expected_(kMaxEntries) {
    batch_.reserve(kMaxEntries);
}

void Applier::expect(Index index, Replica::Done done) {
    if (expected_.full()) expected_.set_capacity(expected_.capacity() * 2);
    expected_.push_back({index, std::move(done)});
}

log::Point Applier::apply_some(const core::Core& core) {
    batch_.clear();
    log::Point at = core.applied();
    std::size_t bytes = 0;
    while (at.index < core.commit().index && batch_.size() < kMaxEntries && bytes < kMaxBytes) {
        const std::byte* start = core.ring().at(at.position);
        at = log::step_over_verified(core.ring(), at);
        log::EntryHeader header;
        std::memcpy(&header, start, sizeof header);
        if (header.kind != log::EntryKind::command) continue;
        bytes += header.length;
        batch_.push_back({at.index, at.ballot, at.timestamp_ns, BytesView(start + sizeof header, header.length)});
    }
    if (!batch_.empty()) {
        replies_.begin(batch_.size(), !expected_.empty());
        state_machine_.apply(batch_, replies_);
        answer();
    }
    return at;
}

// Proposals commit in the order in which they were appended, so the oldest expected one is met first.
void Applier::answer() {
    for (std::size_t i = 0; i < batch_.size() && !expected_.empty(); ++i) {
        if (expected_.front().index != batch_[i].index) {
            LOCKSTEP_CHECK_OP(expected_.front().index.value, >, batch_[i].index.value);
            continue;
        }
        const Replica::Done done = std::move(expected_.front().done);
        expected_.pop_front();
        done(Outcome{Fate::applied, Reason::none, {}, batch_[i].index, replies_.at(i)});
    }
}

void Applier::lose_all() {
    while (!expected_.empty()) {
        const Replica::Done done = std::move(expected_.front().done);
        expected_.pop_front();
        done(Outcome{});
    }
}

}  // namespace lockstep::replica
