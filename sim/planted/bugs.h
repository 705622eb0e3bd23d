// The bugs that can be planted (log/planted_bugs.h): what each does, which rules it breaks, and within how many seeds
// the simulator must find it.
#pragma once

#include "log/planted_bugs.h"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::sim {

struct Bug {
    PlantedBug bug;
    const char* name;
    const char* rules;
    const char* what;
    std::uint64_t seeds;  // at most so many seeds until it is found; 0: a case of its own finds it
    bool durable;         // by seeds of durable mode
};

std::span<const Bug> bugs();
// Null if there is none of that name.
const Bug* bug_named(const std::string& name);

}  // namespace lockstep::sim
