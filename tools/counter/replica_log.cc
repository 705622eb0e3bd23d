#include "tools/counter/replica_log.h"

#include <utility>

namespace lockstep::counter {

Result<void> ReplicaLog::open(const Options& options, StateMachine& machine) {
    auto opened = Replica::open(options, machine);
    if (!opened) return std::move(opened).error();
    replica_ = std::move(opened).value();
    return {};
}

LogStatus ReplicaLog::status() const {
    const Status status = replica_->status();
    LogStatus shown;
    shown.stopped = status.role == Role::stopped;
    shown.leader = status.leader;
    shown.role = to_string(status.role);
    shown.ballot = to_string(status.ballot);
    shown.durability = status.durability;
    shown.durable = status.durable.value;
    shown.snapshot = status.snapshot.value;
    shown.snapshot_ns = status.snapshot_ns;
    shown.note = status.note;
    shown.incarnation = to_string(status.incarnation);
    shown.committed = status.committed.value;
    shown.applied = status.applied.value;
    shown.end = status.end.value;
    shown.entries_committed = status.entries_committed;
    shown.writes_posted = status.writes_posted;
    shown.elections_started = status.elections_started;
    for (const PeerStatus& peer : status.peers) {
        shown.peers.push_back({peer.id, peer.connected, peer.votes, peer.path, peer.lane, peer.landed.value,
                               peer.consumed.value});
    }
    return shown;
}

}  // namespace lockstep::counter
