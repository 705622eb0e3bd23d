// The load's book-keeping: what was acknowledged, and whether that can be true.
#pragma once

#include "tools/counter/load.h"
#include "tools/counter/request.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace lockstep::counter {

// Knows one counter that nobody else changes, from the answers to increments by one. Every acknowledged value has to
// be new, and higher than all that had been acknowledged when its increment was sent (linearizability of a counter).
// Used by one thread.
class Ledger {
 public:
    Ledger(std::int64_t value_before, Clock::time_point now);
    // The highest value acknowledged so far: note it when an increment is sent.
    std::int64_t floor() const { return highest_; }
    // An increment sent at `sent`, when `floor()` was `floor`, has been answered with `value`.
    void acked(std::int64_t value, std::int64_t floor, Clock::time_point sent, Clock::time_point now);
    void unknown(std::uint64_t increments) { report_.unknown += increments; }
    void refused() { ++report_.refused; }
    void reconnected() { ++report_.reconnects; }
    void violated(std::string what);
    // Marks an event: the time to the first acknowledgement of an increment sent later is taken.
    void event(Clock::time_point now) { events_.push_back(now); }
    // Compares with the value that was read when all was over.
    void finish(std::int64_t value_after);
    const LoadReport& report() const { return report_; }

 private:
    LoadReport report_;
    std::int64_t highest_;
    std::vector<bool> seen_;              // by value, from the first after `value_before`
    Clock::time_point last_ack_;
    std::deque<Clock::time_point> events_;  // without an acknowledgement so far
};

}  // namespace lockstep::counter
