// Known bugs, planted to show that the simulator finds them. In the library that is built for use every plant is
// constantly false and leaves nothing behind; a second build of the same sources, for the simulator's own tests alone,
// asks a switch that plants one bug at a time.
#pragma once

#ifdef LOCKSTEP_PLANTABLE
#include "log/planted_bugs.h"
// Whether that bug is planted; the place that asks says what the bug does.
#define LOCKSTEP_PLANTED(bug) (::lockstep::planted_bug == ::lockstep::PlantedBug::bug)
#else
#define LOCKSTEP_PLANTED(bug) false
#endif
