// What must follow when faults end: a leader, commits, and everybody up to date, each within a bound.
#pragma once

#include "sim/clients.h"
#include "sim/cluster.h"

#include <cstdint>
#include <optional>

namespace lockstep::sim {

struct Recovered {
    std::uint64_t to_leader_ns = 0;
    std::uint64_t to_commit_ns = 0;
};

// Whether `id` may lose what it knows, and a majority still knows all: else there is rightly no progress (S12). One
// whose disk may have lost something does not count (S14).
bool may_crash(const Cluster& cluster, ReplicaId id);

// Ends all faults but that `paused`, where there is one, is paused, and lets the cluster recover. Throws NoProgress if
// it does not. The caller restores the faults.
Recovered recover(Cluster& cluster, Clients& clients, std::optional<ReplicaId> paused);

}  // namespace lockstep::sim
