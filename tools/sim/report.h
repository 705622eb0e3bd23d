// What a person gets to see of a run.
#pragma once

#include "sim/run.h"

#include <chrono>
#include <string>

namespace lockstep::tools::sim {

// How the program ends.
enum Exit : int { kNothingFound = 0, kCannot = 1, kSafety = 2, kNoProgress = 3, kCrash = 4 };
int exit_of(lockstep::sim::Failure failure);

// One line: how a run ended, and its end hash.
std::string summary(const lockstep::sim::Case& of, const lockstep::sim::RunResult& result);

struct Reporting {
    std::string name;       // of the case: files are named by it
    std::string reproduce;  // the command that shows the failure again
    std::string program;    // how this program is called, with what it needs to replay a case
    std::chrono::seconds shrink{60};
    bool trace = true;
};

// Says what failed and how to see it again; shrinks the case into a file, and writes that one's trace into another.
void report_failure(const lockstep::sim::Case& of, const lockstep::sim::RunResult& result, const Reporting& reporting);

}  // namespace lockstep::tools::sim
