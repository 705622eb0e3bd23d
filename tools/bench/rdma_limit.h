// What the same machine gives raw verbs for the same pattern: one WRITE to each of two peers, each a process of its
// own, and wait for the first completion. Uses nothing of the library but its names of polling modes.
#pragma once

#include "tools/bench/histogram.h"
#include "tools/bench/limit.h"

#include <lockstep/result.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

// The first `hosts` is the initiator's address, the others are the peers'; each is looked for among the addresses of
// the RDMA devices' ports, on RoCE v2.

// The body of a peer's process: gives the one at the other end of the connected socket `descriptor` memory of `bytes`
// to write, until the connection ends. Returns an exit status.
int run_rdma_peer(int descriptor, const std::string& host, std::size_t bytes);

// As measure_round_trips and measure_stream do over TCP. Polling::adaptive counts as spin. Error: there is no device
// with such an address, or it refuses; in builds without libibverbs always.
Result<Histogram> measure_rdma_round_trips(const LimitPlan& plan, const std::vector<std::string>& hosts,
                                           std::uint64_t deadline_ns);
Result<double> measure_rdma_stream(const LimitPlan& plan, const std::vector<std::string>& hosts,
                                   std::uint64_t deadline_ns);

}  // namespace lockstep::bench
