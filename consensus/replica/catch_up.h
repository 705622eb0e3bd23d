// Snapshots and catching up of one replica: when a snapshot is taken, what it lets go, and both sides of a transfer.
#pragma once

#include "consensus/core/core.h"
#include "consensus/replica/backlog.h"
#include "consensus/replica/fetcher.h"
#include "consensus/replica/snapshot_store.h"
#include "consensus/replica/storage.h"
#include "consensus/replica/supplier.h"

#include <lockstep/result.h>
#include <lockstep/state_machine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::replica {

// A snapshot is taken by itself when the log has grown by so much since the last one; 0: not for that reason. Only
// where the log is kept on disk: in memory it is taken when somebody needs it.
struct SnapshotTriggers {
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
};

struct CatchUpOptions {
    std::uint64_t cluster_id = 0;
    SnapshotTriggers triggers;
    std::uint64_t heartbeat_ns = 0;
    std::uint64_t election_timeout_ns = 0;
};

// Not thread-safe: the protocol thread calls.
class CatchUp {
 public:
    // `storage` and `wal` are there where the log is kept on disk, and both or neither. All references outlive this.
    CatchUp(const CatchUpOptions& options, StateMachine& state_machine, SnapshotStore& store, const log::Ring& ring,
            const log::Ring& scratch, Storage* storage, LogSource* wal, Supplier::Send send);

    void fetch(const core::effect::Fetch& fetch, std::uint64_t genesis) { fetcher_.fetch(fetch, genesis); }
    void end_fetch() { fetcher_.end(); }
    // Blocks while the state machine takes the snapshot. An error leaves it half replaced: the replica stops.
    Result<void> install(const log::Point& at);
    void receive(std::uint64_t now_ns, ReplicaId from, const Transfer& transfer, const core::Core& core,
                 std::vector<core::Event>& events);
    // Once a turn. What the core has to hear of goes to `events`. An error is a disk that
    // failed (S13).
    Result<void> turn(std::uint64_t now_ns, const core::Core& core, std::vector<core::Event>& events);
    // The log up to there is committed, and about to be applied, so that the ring may be written over.
    void keep(Position commit) { backlog_.extend(commit); }
    // Takes a snapshot in the next turn, if the service has snapshots; `done` hears the index, or why there is none.
    using Taken = std::function<void(const Result<Index>& taken)>;
    void take_snapshot(Taken done) { asked_.push_back(std::move(done)); }
    // Every such request ends without one.
    void stop();
    // What is kept for one that catches up fills the memory that there is for it: nothing may be appended.
    bool holds_up() const { return !storage_ && backlog_.full(); }

    Index newest_snapshot() const { return store_.held().empty() ? Index{} : store_.held().front().name.at.index; }
    // What is going on, for a person.
    std::string text() const { return fetcher_.text(); }

 private:
    void take(std::uint64_t now_ns, const SnapshotOutcome& outcome, const core::Core& core,
              std::vector<core::Event>& events);
    void take_snapshot_if_due(std::uint64_t now_ns, const core::Core& core);
    void let_go(const core::Core& core);
    void answer(const Result<Index>& taken);
    log::Point newest() const;  // of the complete snapshots here

    const CatchUpOptions options_;
    StateMachine& state_machine_;
    SnapshotStore& store_;
    Storage* const storage_;
    Backlog backlog_;
    Supplier supplier_;
    Fetcher fetcher_;
    log::Point taken_at_;         // of the newest snapshot that was begun
    bool has_snapshots_ = true;   // as long as the service has not said otherwise
    std::uint64_t retry_at_ns_ = 0;  // after one that failed
    std::vector<Taken> asked_;      // not yet begun
    std::vector<Taken> answered_;   // by the one that is being taken
    std::optional<log::Point> covers_;  // the newest snapshot here lets go what is below, once the log there is on disk
    std::vector<SnapshotOutcome> outcomes_;
};

}  // namespace lockstep::replica
