// Draws a case from a seed. The same seed gives the same case, and so the same run.
#pragma once

#include "sim/case.h"

#include <cstdint>

namespace lockstep::sim {

// Several virtual seconds of faults, with recoveries between them. Swarm testing (Groce et al., ISSTA 2012): each case
// has some kinds of faults only, at rates of its own, so that one does not hide another.
// Of `replicas` replicas, where that is not 0.
Case draw(std::uint64_t seed, std::size_t replicas = 0);

}  // namespace lockstep::sim
