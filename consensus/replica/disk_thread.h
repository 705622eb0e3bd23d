// Waits for the disk, so that the protocol's thread never does.
#pragma once

#include "consensus/replica/disk_worker.h"
#include "log/disk/disk.h"
#include "log/disk/disk_queue.h"
#include "log/wal/wal.h"

#include <lockstep/result.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace lockstep {

// Performs a WAL's jobs, one at a time, on a thread; those that only write and sync are the kernel's, where there is a
// queue for it. All calls come from one thread, the protocol's, and none blocks but the destructor.
class DiskThread final : public DiskWorker {
 public:
    // `wake` is called by the disk's thread when a job has ended, so that the protocol's thread calls `turn`. Until the
    // destructor has returned, `disk` is used by no other thread. `queue`, of the same disk, wakes by itself; or null.
    DiskThread(log::Disk& disk, std::function<void()> wake, std::unique_ptr<log::DiskQueue> queue = nullptr);
    // Waits for the operation that runs; jobs that have not begun an operation do not begin it.
    ~DiskThread() override;
    DiskThread(const DiskThread&) = delete;
    DiskThread& operator=(const DiskThread&) = delete;

    bool turn(log::Wal& wal) override;

    // For how long the operation that runs now has done so; zero if none does. A disk that hangs shows here: an
    // operation cannot be called off, but a replica can stop counting on it.
    std::chrono::nanoseconds waiting() const;

 private:
    void run();
    bool take_queued();

    log::Disk& disk_;
    const std::function<void()> wake_;
    mutable std::mutex mutex_;
    std::condition_variable begun_;
    const log::DiskJob* job_ = nullptr;  // until its outcome is there
    std::optional<Result<void>> outcome_;
    std::optional<std::chrono::steady_clock::time_point> operation_since_;
    const std::unique_ptr<log::DiskQueue> queue_;  // the protocol's thread alone uses it
    const log::DiskJob* queued_ = nullptr;         // what it is at
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace lockstep
