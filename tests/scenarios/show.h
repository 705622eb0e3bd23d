// Replicas as text, the same in every run.
#pragma once

#include "sim/cluster.h"

#include <lockstep/types.h>

#include <string>

namespace lockstep::scenarios {

// What a replica knows, and every entry that its ring holds, as index:ballot:command. A bar stands behind the last
// committed one; a tilde before those that are there but not believed (S8). A log that has gone round the ring is
// shown from its commit on.
//     r2 follower 2.1, commit 2, applied 2: 1:1.1:no-op 2:1.1:a | 3:2.1:b ~ 4:1.1:c
std::string show(const sim::Cluster& cluster, ReplicaId id);

// Its outgoing lanes if it leads, else the incoming one.
//     r1 leads: r2 streaming (open 1, landed 4), r3 none
//     r2 follows r1 (open 1)
std::string show_lanes(sim::Cluster& cluster, ReplicaId id, std::size_t replicas);

}  // namespace lockstep::scenarios
