// Cases built around one situation each that chance seldom makes: it takes many steps in one order, with nothing
// between. The rest of each, who plays which part and how long things take, is drawn.
#pragma once

#include "sim/case.h"

#include <cstdint>

namespace lockstep::sim {

// The same seed gives the same case.
Case draw_directed(std::uint64_t seed);

}  // namespace lockstep::sim
