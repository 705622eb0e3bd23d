// Who performs a WAL's jobs.
#pragma once

#include "log/wal/wal.h"

namespace lockstep {

// One job at a time: a thread on a real disk, virtual time on a simulated one.
class DiskWorker {
 public:
    virtual ~DiskWorker() = default;
    // Tells the WAL how its job ended, if it has, and begins the next one, if there is one. Whether one has ended: what
    // is durable may be more than before, or the WAL has stopped. Call it after every change of the WAL, too.
    virtual bool turn(log::Wal& wal) = 0;
};

}  // namespace lockstep
