// Draws a case from a seed. The same seed gives the same case, and so the same run.
#pragma once

#include "sim/case.h"

#include <cstdint>

namespace lockstep::sim {

// Several virtual seconds of faults, with recoveries between them. Swarm testing (Groce et al., ISSTA 2012): each case
// has some kinds of faults only, at rates of its own, so that one does not hide another.
// In memory mode. Of `replicas` replicas, where that is not 0.
Case draw(std::uint64_t seed, std::size_t replicas = 0);
// In durable mode: the same, and everything that disks and power do.
Case draw_durable(std::uint64_t seed, std::size_t replicas = 0);
// The one or the other, by turns.
Case draw_either(std::uint64_t seed, std::size_t replicas = 0);

}  // namespace lockstep::sim
