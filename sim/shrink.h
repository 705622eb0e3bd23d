// Makes a failing case smaller: fewer actions, fewer kinds of faults, the same failure.
#pragma once

#include "sim/apart.h"

#include <chrono>
#include <functional>

namespace lockstep::sim {

struct Shrunk {
    Case smaller;
    RunResult failure;      // of the smaller one
    std::size_t tries = 0;  // runs that it took
};

// Whether both fail in the same way: the kind, and what is said but for its numbers.
bool same_failure(const RunResult& a, const RunResult& b);

// `failure` is what `of` ends with. Stops after about `most`, with the smallest case so far. `progress` is told now and
// then how many actions are left. Runs each try in a process of its own (see sim/apart.h). Delta debugging (Zeller and
// Hildebrandt, TSE 2002), simplified.
Shrunk shrink(const Case& of, const RunResult& failure, std::chrono::seconds most,
              const std::function<void(std::size_t actions)>& progress);

}  // namespace lockstep::sim
