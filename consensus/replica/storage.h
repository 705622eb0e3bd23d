// Where a replica keeps what it must not forget when its process ends.
#pragma once

#include "consensus/core/core.h"

#include <lockstep/result.h>

#include <vector>

namespace lockstep::replica {

// Not thread-safe: the protocol thread calls. Nothing here waits for a disk: outcomes are asked for once in every turn,
// and whoever made one ends the fabric's wait (Fabric::wake).
class Storage {
 public:
    virtual ~Storage() = default;

    // Puts the promise on disk, then says PromiseKept; one that is not begun yet may be left out for a later one.
    virtual void keep_promise(const core::effect::KeepPromise& promise) = 0;
    // Puts the bytes on disk, then says LogKept. Until then the ring keeps them (S11), unless a newer generation comes:
    // what is copied is believed only after it has been verified as a copy. Where the disk holds other bytes from a
    // point of the new generation on, those are cut, the durable floor first (S8, S10); bytes that are the same stay.
    virtual void keep_log(const core::effect::KeepLog& log) = 0;
    // The log starts anew at `at`, of which a durable snapshot is there: nothing of the old one is said to be kept any
    // more; when the new one's beginning is on disk, LogKept is said of it.
    virtual void start_anew(const log::Point& at) = 0;
    // A durable snapshot covers what lies below: it may go. False if that cannot be now, and is to be asked again.
    virtual bool release(Position below) = 0;
    // What was lost before this start has been made up for (S14).
    virtual void forgive() = 0;
    // Batches of entries that were written and synced since the start.
    virtual std::uint64_t batches() const = 0;
    // What has come to be kept since. An error says that the disk failed, and comes again with every call: the replica
    // stops for good (S13).
    virtual Result<void> take_outcomes(std::vector<core::Event>& outcomes) = 0;
};

}  // namespace lockstep::replica
