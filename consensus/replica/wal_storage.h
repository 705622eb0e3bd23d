// A replica's storage in a WAL: decides what of the log the disk already has, what is to be cut, and what is new.
#pragma once

#include "consensus/replica/disk_worker.h"
#include "consensus/replica/storage.h"
#include "log/wal/wal.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::replica {

// Everything runs on the protocol thread but what the worker does.
class WalStorage final : public Storage {
 public:
    // `ring` is the replica's, and `copy` memory of its own, as large.
    WalStorage(const log::Ring& ring, const log::Ring& copy, DiskWorker& worker)
        : ring_(ring), copy_(copy), worker_(worker) {}
    // Begins with what is on disk, once, before anything is to be kept. Ring and copy hold what `recovered` says.
    void start(const log::Recovered& recovered);

    void keep_promise(const core::effect::KeepPromise& promise) override;
    void keep_log(const core::effect::KeepLog& log) override;
    void start_anew(const log::Point& at) override;
    bool release(Position below) override;
    void forgive() override;
    std::uint64_t batches() const override { return wal_ ? wal_->batches() : 0; }
    Result<void> take_outcomes(std::vector<core::Event>& outcomes) override;

    // Once it has started.
    const log::Wal& wal() const { return *wal_; }
    // What lies below is not in the log on disk; beyond every position before there is one.
    Position begin() const;

 private:
    void advance();

    log::Ring ring_;
    log::Ring copy_;
    DiskWorker& worker_;
    std::optional<log::Wal> wal_;
    std::optional<core::effect::KeepPromise> promise_;  // not yet kept

    std::uint64_t generation_ = 0;
    log::Point at_;     // the WAL's log is this generation's up to here
    log::Point upto_;   // asked for
    log::Point said_;   // in this generation
    Index said_committed_;
    Index committed_;   // to be kept
    Index at_once_;     // up to here the disk does not wait for more
    std::optional<Error> broken_;
};

}  // namespace lockstep::replica
