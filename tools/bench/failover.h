// How long the service is away when its leader is killed, as a client sees it.
#pragma once

#include "tools/bench/cluster.h"

#include <lockstep/options.h>

#include <string>
#include <vector>

namespace lockstep::bench {

struct FailoverPlan {
    unsigned rounds = 100;
    Polling polling = Polling::blocking;
    std::string transport = "tcp";                                             // or "rdma"
    std::vector<std::string> hosts = {"127.0.0.1", "127.0.0.1", "127.0.0.1"};  // of the replicas
    std::uint32_t election_timeout_ms = ClusterSpec{}.election_timeout_ms;
};

// Each round: three fresh replicas, each a process; this process is their client. It proposes at the leader until that
// is acknowledged, kills the leader, and proposes at the others until one of them acknowledges. Returns an exit
// status. Main thread only.
int run_failover(const FailoverPlan& plan);

// The body of a replica's process: takes what the client asks from the socket `descriptor`, until that ends. Returns
// an exit status.
int run_failover_replica(const ClusterSpec& spec, std::uint8_t id, int descriptor);

}  // namespace lockstep::bench
