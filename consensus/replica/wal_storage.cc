#include "consensus/replica/wal_storage.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>

namespace lockstep::replica {

namespace {

// Few fdatasyncs, which cost a processor's time as well as the disk's, and writes that are still small beside a ring.
constexpr std::uint64_t kGatherBytes = std::uint64_t{1} << 20;

}  // namespace

void WalStorage::start(const log::Recovered& recovered) {
    ring_.set_genesis(recovered.hard.genesis);
    copy_.set_genesis(recovered.hard.genesis);
    at_ = upto_ = recovered.end;
    wal_.emplace(recovered, copy_);
    worker_.turn(*wal_);
}

void WalStorage::keep_promise(const core::effect::KeepPromise& promise) {
    promise_ = promise;
    wal_->promise(promise.ballot, promise.candidate);
    worker_.turn(*wal_);
}

void WalStorage::keep_log(const core::effect::KeepLog& log) {
    if (log.generation != generation_) {
        generation_ = log.generation;
        // What was asked for before and is not copied yet is in the same log up to here.
        if (at_.index > log.from.index) at_ = log.from;
        if (LOCKSTEP_PLANTED(log_cut_at_promise) && wal_->appended().index > at_.index) wal_->truncate(at_);
        said_ = {};
        said_committed_ = {};
    }
    upto_ = log.upto;
    committed_ = log.committed;
    advance();
    // Of another log than the WAL's nothing is said: what it has behind at_ may be cut yet.
    wal_->commit(std::min(committed_, at_.index), log.now);
    if (!log.gather) at_once_ = log.upto.index;
    wal_->gather(log.gather && wal_->durable().index >= at_once_ ? std::min(kGatherBytes, ring_.bytes() / 16) : 0);
    worker_.turn(*wal_);
}

void WalStorage::start_anew(const log::Point& at) {
    wal_->start_anew(at);
    at_ = upto_ = at;
    committed_ = at.index;
    worker_.turn(*wal_);
}

bool WalStorage::release(Position below) {
    if (!wal_->release(below)) return false;
    worker_.turn(*wal_);
    return true;
}

Position WalStorage::begin() const { return wal_ && wal_->settled() ? wal_->base().position : log::kNoLimit; }

void WalStorage::forgive() { wal_->forgive(); }

// S8: entries that the WAL has are stepped over, and stay as they are. It is cut only where a believed entry differs.
void WalStorage::advance() {
    while (!broken_ && at_.index < upto_.index) {
        if (at_.index < wal_->appended().index) {
            const log::Point next = log::step_over_verified(ring_, at_);
            if (next == log::step_over_verified(copy_, at_)) {
                at_ = next;
                continue;
            }
            wal_->truncate(at_);
        }
        const log::Taken taken = wal_->append(ring_, upto_.position);
        at_ = wal_->appended();
        if (taken == log::Taken::broken)
            broken_ = Error("the log in memory does not verify behind position " + to_string(at_.position) +
                            ", where it did before: is the memory sound?");
        if (taken != log::Taken::all) return;
    }
}

Result<void> WalStorage::take_outcomes(std::vector<core::Event>& outcomes) {
    if (!wal_) return {};
    do {
        advance();
        wal_->commit(std::min(committed_, at_.index), false);
    } while (worker_.turn(*wal_));
    if (broken_) return *broken_;
    if (wal_->stopped()) return *wal_->stopped();
    if (promise_ && wal_->kept().promised == promise_->ballot && wal_->kept().promised_to == promise_->candidate) {
        outcomes.push_back(core::event::PromiseKept{promise_->serial});
        promise_.reset();
    }
    if (!wal_->settled()) return {};  // a restart would bring the log back that was before
    const log::Point& durable = wal_->durable();
    const log::Point kept = durable.index < at_.index ? durable : at_;
    const Index committed = std::min(wal_->committed(), kept.index);
    if (generation_ != 0 && (kept.index > said_.index || committed > said_committed_)) {
        said_ = kept;
        said_committed_ = committed;
        outcomes.push_back(core::event::LogKept{generation_, kept, committed});
    }
    return {};
}

}  // namespace lockstep::replica
