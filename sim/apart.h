// Runs a case in a process of its own, so that one that ends by a failed check, or does not end, can be told.
#pragma once

#include "sim/run.h"

#include <sys/types.h>

#include <chrono>
#include <string>

namespace lockstep::sim {

// One run under way in a child process. One thread starts and ends them all; no other thread runs when one is started.
class Apart {
 public:
    Apart() = default;
    // Starts it. A child that cannot be started is a crash, with the reason.
    // The run's trace goes to the file `trace`, if that is not empty.
    explicit Apart(const Case& of, const std::string& trace = {});
    Apart(Apart&& other) noexcept { *this = std::move(other); }
    Apart& operator=(Apart&& other) noexcept;
    // Ends the child if it still runs.
    ~Apart();

    // Readable when there is something to take; for poll(2).
    int descriptor() const { return results_; }
    // Takes what there is; true once the child has ended. Blocks only until something comes.
    bool take();
    // Ends the child: it takes too long, which is no progress.
    void give_up();
    // Once it has ended. What a crashed one wrote to its standard error is in `what`.
    RunResult result() const;
    std::chrono::steady_clock::time_point started() const { return started_; }

 private:
    pid_t child_ = -1;
    int results_ = -1;
    std::string taken_;
    int status_ = 0;
    bool gave_up_ = false;
    std::string cannot_;
    std::chrono::steady_clock::time_point started_;
};

inline constexpr std::chrono::seconds kRunLimit{60};  // of real time: runs take milliseconds

// The same, waiting for its end, for `limit` at most.
RunResult run_apart(const Case& of, std::chrono::seconds limit, const std::string& trace = {});

}  // namespace lockstep::sim
