// How the limits are timed, whatever they go over.
#pragma once

#include "tools/bench/clock.h"
#include "tools/bench/histogram.h"
#include "tools/bench/limit.h"

#include <lockstep/result.h>

#include <cstdint>

namespace lockstep::bench {

// Rounds one after the other, until the plan's time is over: `round(number)`, from 1, returns when the first peer has
// got message `number`. Those of the warm-up do not count.
template <class Round>
Result<Histogram> time_rounds(const LimitPlan& plan, Round&& round) {
    Histogram latency;
    const std::uint64_t measured_from = now_ns() + plan.warm_up_ns;
    const std::uint64_t end = measured_from + plan.measure_ns;
    bool warm = plan.warm_up_ns == 0;
    std::uint64_t posted_ns = now_ns();
    for (std::uint64_t number = 1; posted_ns < end; ++number) {
        if (Result<void> done = round(number); !done) return std::move(done).error();
        const std::uint64_t now = now_ns();
        latency.record(now - posted_ns);
        if (!warm && now >= measured_from) {
            warm = true;
            latency.clear();
        }
        posted_ns = now;
    }
    return latency;
}

// Bytes a second, after the warm-up: `turn()` posts and waits a little, `arrived()` says how many messages of
// `message_bytes` have reached all peers.
template <class Turn, class Arrived>
Result<double> time_stream(const LimitPlan& plan, std::uint64_t message_bytes, Turn&& turn, Arrived&& arrived) {
    const std::uint64_t measured_from = now_ns() + plan.warm_up_ns;
    const std::uint64_t end = measured_from + plan.measure_ns;
    std::uint64_t from_ns = 0;
    std::uint64_t from_messages = 0;
    while (true) {
        if (Result<void> done = turn(); !done) return std::move(done).error();
        const std::uint64_t now = now_ns();
        if (from_ns == 0 && now >= measured_from) {
            from_ns = now;
            from_messages = arrived();
        }
        if (now >= end && from_ns != 0 && now > from_ns)
            return static_cast<double>((arrived() - from_messages) * message_bytes) * static_cast<double>(kSecond) /
                   static_cast<double>(now - from_ns);
    }
}

}  // namespace lockstep::bench
