// A client that counts, for demonstrations and tests: it increments one key as fast as it may, notes what was
// acknowledged, and says at the end whether anything was lost or doubled.
#pragma once

#include <lockstep/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::counter {

struct LoadOptions {
    std::vector<std::string> servers;   // "host:port"; a connection that breaks goes on with the next
    std::string key = "counter";
    double seconds = 5;
    std::uint32_t connections = 4;
    std::uint32_t pipeline = 16;        // increments under way on one connection
    std::uint64_t count = 0;            // ends after so many acknowledged increments; 0: goes by time alone
    std::string journal;                // a line for every answer is appended to this file; empty: none
    std::uint32_t reply_timeout_ms = 3000;  // a server that answers nothing for so long is given up: outcome unknown
    bool quiet = false;                 // no line of progress each second
};

struct LoadReport {
    std::uint64_t acked = 0;            // increments that were answered with a number
    std::uint64_t unknown = 0;          // may or may not have had effect: said so, or never answered
    std::uint64_t refused = 0;          // certainly had none: tried again
    std::uint64_t reconnects = 0;
    std::int64_t value_before = 0;
    std::int64_t value_after = 0;
    std::uint64_t longest_gap_us = 0;   // the longest time without an acknowledgement
    std::vector<std::uint64_t> event_gaps_us;  // per SIGUSR1: until the first answer to a later increment
    std::vector<std::string> violations;       // what must never happen
    bool value_read = false;            // whether `value_after` is known
};

// Steers a load that runs on another thread. Threads: any.
class LoadControl {
 public:
    // Marks an event, such as the end of a leader: the time from now to the next acknowledgement is taken.
    void event() { act(Act::event); }
    // Ends the load before its time.
    void finish() { act(Act::finish); }
    // Increments acknowledged so far.
    std::uint64_t acked() const { return acked_.load(std::memory_order_relaxed); }

 private:
    friend class Load;
    enum class Act : std::uint8_t { event, finish };
    void act(Act what) {
        const std::lock_guard lock(mutex_);
        if (handler_) handler_(what);
    }
    std::mutex mutex_;
    std::function<void(Act)> handler_;   // while a load runs
    std::atomic<std::uint64_t> acked_{0};
};

// Runs the load; blocks until it is over. Error: no server can be reached at the start, or the journal cannot be
// written. SIGUSR1 marks an event as LoadControl::event does; SIGINT and SIGTERM end the load early, with its report.
// `control` may be null.
Result<LoadReport> run_load(const LoadOptions& options, LoadControl* control = nullptr);

// Prints a report for people. Returns the exit status: 0 if acked <= value <= acked + unknown and nothing else was
// found wrong, 1 if not, 2 if the value could not be read.
int print_report(const LoadReport& report);

}  // namespace lockstep::counter
