// A replica that comes back with its disk: reads the log back into the ring, and applies what is committed.
#pragma once

#include "consensus/core/core.h"
#include "log/wal/recovery.h"

#include <lockstep/state_machine.h>

#include <functional>
#include <optional>

namespace lockstep::replica {

struct Replayed {
    log::Recovered log;
    core::Recovered core;
};

// Blocks for as long as reading and applying take. Fills `ring`. Nothing where the folder holds no log. `voters` are
// those of the formation. Errors: the folder is another replica's; the log cannot be read, or is damaged so that this
// replica must not vote (S14).
Result<std::optional<Replayed>> replay(log::Disk& disk, const log::Identity& identity, log::Ring ring,
                                       const core::Config& voters, StateMachine& state_machine,
                                       const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace lockstep::replica
