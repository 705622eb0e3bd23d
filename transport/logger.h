// Where the library says what a person who runs a replica should know.
#pragma once

#include <spdlog/logger.h>

namespace lockstep {

// The spdlog logger named "lockstep": the one that the program has registered before the first use, else one that
// writes to standard error (a program's standard output is its own). Never null. Threads: any.
spdlog::logger& logger();

}  // namespace lockstep
