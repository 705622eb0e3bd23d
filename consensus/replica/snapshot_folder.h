// Where a replica's snapshots are, and the thread that works there.
#pragma once

#include "consensus/replica/background_thread.h"
#include "consensus/replica/snapshot_store.h"
#include "log/disk/posix_disk.h"
#include "transport/fabric.h"

#include <lockstep/result.h>

#include <atomic>
#include <memory>
#include <string>

namespace lockstep::replica {

class SnapshotFolder {
 public:
    // `folder` is made if it is missing. With `none_counts`, what is there is of a life that has ended, and is removed.
    // Blocks. Errors: the folder cannot be used, or read.
    static Result<std::unique_ptr<SnapshotFolder>> open(const std::string& folder, bool none_counts);

    SnapshotStore& store() { return store_; }
    Background& background() { return background_; }
    // Whom to wake when something is done; nobody before.
    void attach(transport::Fabric& fabric) { fabric_.store(&fabric); }
    void wake() const {
        if (transport::Fabric* fabric = fabric_.load()) fabric->wake();
    }

 private:
    explicit SnapshotFolder(std::unique_ptr<log::PosixDisk> disk)
        : disk_(std::move(disk)), store_(*disk_, background_, [this] { wake(); }) {}

    std::atomic<transport::Fabric*> fabric_{nullptr};
    std::unique_ptr<log::PosixDisk> disk_;
    SnapshotStore store_;
    BackgroundThread background_;  // ends first: what runs uses the others
};

}  // namespace lockstep::replica
