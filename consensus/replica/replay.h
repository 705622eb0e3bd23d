// Coming back: the newest snapshot, the log on disk, and the state machine brought to what they say is committed.
#pragma once

#include "consensus/core/core.h"
#include "consensus/replica/snapshot_store.h"
#include "log/wal/recovery.h"

#include <lockstep/state_machine.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace lockstep::replica {

struct Replayed {
    log::Recovered log;
    core::Recovered core;  // all but `formed`, which the log does not know
};

// Fills `ring` with the end of the log, makes `state_machine`, which is fresh, that of the newest snapshot in the log,
// applies to it what is known to be committed behind that, and sees to it that what was read stays there: what a killed
// process wrote may be in the system's memory only. `first_config` is what the cluster began with, where that is known.
// A log that is damaged below the newest snapshot is read on from there; what is behind another damage is lost, though
// it stays on disk for the time being: the loss says so (S14).
// Blocks for as long as reading the log takes; `progress` as log::recover's. Nothing where the folder holds no log.
// Errors: those of log::recover; the log begins behind a snapshot that is not there; the state machine does not take
// the snapshot.
Result<std::optional<Replayed>> replay(log::Disk& disk, const log::Identity& identity, log::Ring ring,
                                       const core::Config& first_config, SnapshotStore& snapshots,
                                       StateMachine& state_machine,
                                       const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace lockstep::replica
