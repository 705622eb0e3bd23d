// Commits, the machine's limit, or both by turns.
#pragma once

#include "tools/bench/plan.h"

namespace lockstep::bench {

// Measures, prints, and writes the files that the plan names. Returns an exit status. Main thread only.
int run_compare(const Plan& plan);

}  // namespace lockstep::bench
