// What the same machine gives plain Boost.Asio for the same pattern: post to two peers, each a process of its own, and
// wait for one answer. Uses nothing of the library but its names of polling modes.
#pragma once

#include "tools/bench/histogram.h"
#include "tools/bench/process.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::bench {

struct LimitPlan {
    std::size_t bytes = 64;
    Polling polling = Polling::blocking;
    std::uint64_t warm_up_ns = 0;
    std::uint64_t measure_ns = 0;
};

// The body of a peer's process: reads from the connected socket `descriptor`, answers each read with the count of
// messages of `bytes` that are complete by now, until the connection ends. Returns an exit status.
int run_peer(int descriptor, std::size_t bytes, Polling polling);

// Round trips: the same `bytes` to both peers, timed until the first answer; then the next. Main thread only.
Result<Histogram> measure_round_trips(const LimitPlan& plan, std::uint64_t deadline_ns);

// Payload bytes a second that reach both peers at the same time, in writes as large as the sockets take, with a bounded
// number of bytes on the way. Main thread only.
Result<double> measure_stream(const LimitPlan& plan, std::uint64_t deadline_ns);

}  // namespace lockstep::bench
