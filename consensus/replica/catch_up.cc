#include "consensus/replica/catch_up.h"

#include "log/planted.h"
#include "transport/logger.h"

#include <algorithm>
#include <utility>

namespace lockstep::replica {

namespace {

constexpr std::uint64_t kBacklogRings = 4;  // of memory, for one that takes long
static_assert(core::kMaxConfigBytes <= log::SnapshotMeta::kMaxConfigBytes);

}  // namespace

CatchUp::CatchUp(const CatchUpOptions& options, StateMachine& state_machine, SnapshotStore& store,
                 const log::Ring& ring, const log::Ring& scratch, Storage* storage, LogSource* wal,
                 Supplier::Send send)
    : options_(options),
      state_machine_(state_machine),
      store_(store),
      storage_(storage),
      backlog_(ring, kBacklogRings * ring.bytes()),
      supplier_(store, wal != nullptr ? *wal : backlog_, 2 * options.election_timeout_ns, std::move(send)),
      fetcher_(scratch, store, 4 * options.heartbeat_ns) {
    taken_at_ = newest();
    if (!store.held().empty()) covers_ = taken_at_;
}

log::Point CatchUp::newest() const {
    return store_.held().empty() ? log::Point{} : store_.held().front().name.at;
}

Result<void> CatchUp::install(const log::Point& at) {
    const auto held = std::ranges::find(store_.held(), at, [](const SnapshotStore::Held& one) { return one.name.at; });
    if (held == store_.held().end()) return Error("the snapshot of index " + to_string(at.index) + " is gone");
    logger().info("installs the snapshot up to index {}", to_string(at.index));
    auto source = store_.open(held->name);
    if (!source) return std::move(source).error();
    if (auto restored = state_machine_.restore(*source.value()); !restored)
        return std::move(restored).error().within("the state machine cannot take the snapshot of index " +
                                                  to_string(at.index));
    backlog_.stop();  // what lies between is not to be had here
    if (storage_ != nullptr) storage_->start_anew(at);
    covers_ = taken_at_ = at;
    return {};
}

void CatchUp::receive(std::uint64_t now_ns, ReplicaId from, const Transfer& transfer, const core::Core& core,
                      std::vector<core::Event>& events) {
    if (transfer.kind == Transfer::Kind::ask) supplier_.receive(now_ns, from, transfer, core);
    else fetcher_.receive(now_ns, from, transfer, events);
}

Result<void> CatchUp::turn(std::uint64_t now_ns, const core::Core& core, std::vector<core::Event>& events) {
    outcomes_.clear();
    if (auto taken = store_.take_outcomes(outcomes_); !taken) return taken;
    for (const SnapshotOutcome& outcome : outcomes_) take(now_ns, outcome, core, events);
    supplier_.take_log(core);
    supplier_.forget_served(now_ns, core);
    if (auto asks = fetcher_.ask(now_ns, events)) supplier_.send(fetcher_.peer(), *asks);
    take_snapshot_if_due(now_ns, core);
    let_go(core);
    return {};
}

void CatchUp::take(std::uint64_t now_ns, const SnapshotOutcome& outcome, const core::Core& core,
                   std::vector<core::Event>& events) {
    switch (outcome.kind) {
        case SnapshotOutcome::Kind::taken:
            supplier_.has_snapshot(outcome.name);
            // Not where one that is newer was installed meanwhile.
            if (!covers_ || covers_->index < outcome.name.at.index) covers_ = outcome.name.at;
            logger().info("has a snapshot of {} KiB up to index {}", outcome.name.bytes >> 10,
                          to_string(outcome.name.at.index));
            answer(outcome.name.at.index);
            break;
        case SnapshotOutcome::Kind::take_failed:
            // Nothing depends on it yet: the log is there.
            taken_at_ = newest();
            retry_at_ns_ = now_ns + 8 * options_.election_timeout_ns;
            logger().error("cannot take a snapshot: {}", outcome.why);
            answer(Error(outcome.why));
            break;
        case SnapshotOutcome::Kind::piece_read:
            supplier_.take(outcome, core);
            break;
        default:
            fetcher_.take(now_ns, outcome, events);
            break;
    }
}

void CatchUp::take_snapshot_if_due(std::uint64_t now_ns, const core::Core& core) {
    const log::Point& at = core.applied();
    if (store_.taking() || fetcher_.active() || !has_snapshots_) {
        if (!has_snapshots_ && !asked_.empty()) {
            answered_.swap(asked_);
            answer(Error("this service has no snapshots: StateMachine::snapshot returns none"));
        }
        return;
    }
    const bool anew = supplier_.has_bad_snapshot();  // what is there is not what it was
    if (at.index <= taken_at_.index && !anew && !asked_.empty() && !store_.held().empty()) {
        answered_.swap(asked_);
        answer(store_.held().front().name.at.index);
        return;
    }
    // What somebody is taking has to stay until it is there, and the log behind it.
    const bool grown = storage_ != nullptr && !supplier_.serves() && now_ns >= retry_at_ns_ &&
                       ((options_.triggers.bytes != 0 &&
                         at.position - taken_at_.position >= options_.triggers.bytes) ||
                        (options_.triggers.entries != 0 &&
                         at.index.value - taken_at_.index.value >= options_.triggers.entries));
    const bool wanted = supplier_.wants_snapshot() && now_ns >= retry_at_ns_;
    if ((!grown && !wanted && asked_.empty()) || (at.index <= taken_at_.index && !anew)) return;
    // It names those who vote at its index; where they are about to change, it waits until that is applied.
    const bool of_newest = LOCKSTEP_PLANTED(snapshot_names_newest);
    if (core.committed_config().at > at.index && !of_newest) return;
    auto view = state_machine_.snapshot();
    if (!view) {
        has_snapshots_ = false;
        logger().warn("this service has no snapshots: its log is kept whole, and a replica that falls far behind "
                      "cannot always come back");
        return;
    }
    answered_.swap(asked_);
    taken_at_ = at;
    if (storage_ == nullptr) backlog_.start(at.position);
    store_.take(log::SnapshotMeta{options_.cluster_id, core.genesis(), core.ring().bytes(), at,
                                  bytes_of(of_newest ? core.config() : core.committed_config().config)},
                std::move(view));
}

// Older snapshots, and the log that the newest one covers; but not while somebody needs them, and not before the log on
// disk has come as far as the snapshot: a restart goes on from there.
void CatchUp::let_go(const core::Core& core) {
    const bool serves = supplier_.serves();
    // Only a leader's proposals can wait for room in it.
    if (backlog_.full() && core.role() != Role::leader) backlog_.stop();
    if (serves) backlog_.forget(supplier_.needed());
    else if (!store_.taking()) backlog_.stop();
    if (!covers_ || serves) return;
    if (storage_ != nullptr && core.kept().index < covers_->index) return;
    if (storage_ != nullptr && !storage_->release(covers_->position)) return;
    store_.drop_older(covers_->index);
    covers_.reset();
}

void CatchUp::answer(const Result<Index>& taken) {
    for (const Taken& done : answered_) done(taken);
    answered_.clear();
}

void CatchUp::stop() {
    answer(Error("the replica has stopped"));
    answered_.swap(asked_);
    answer(Error("the replica has stopped"));
}

}  // namespace lockstep::replica
