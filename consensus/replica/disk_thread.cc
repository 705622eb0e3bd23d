#include "consensus/replica/disk_thread.h"

#include <utility>

namespace lockstep {

DiskThread::DiskThread(log::Disk& disk, std::function<void()> wake)
    : disk_(disk), wake_(std::move(wake)), thread_([this] { run(); }) {}

DiskThread::~DiskThread() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    begun_.notify_one();
    thread_.join();
}

bool DiskThread::turn(log::Wal& wal) {
    bool ended = false;
    {
        const std::lock_guard lock(mutex_);
        if (job_ != nullptr) return false;
        if (outcome_) {
            wal.finish(*outcome_);
            outcome_.reset();
            ended = true;
        }
        job_ = wal.next();
        if (job_ == nullptr) return ended;
    }
    begun_.notify_one();
    return ended;
}

std::chrono::nanoseconds DiskThread::waiting() const {
    const std::lock_guard lock(mutex_);
    if (!operation_since_) return std::chrono::nanoseconds{0};
    return std::chrono::steady_clock::now() - *operation_since_;
}

void DiskThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        begun_.wait(lock, [this] { return ending_ || job_ != nullptr; });
        if (ending_) return;
        Result<void> outcome;
        for (const log::DiskOperation& operation : job_->operations()) {
            operation_since_ = std::chrono::steady_clock::now();
            lock.unlock();
            outcome = disk_.perform(operation);
            lock.lock();
            operation_since_.reset();
            if (ending_) return;
            if (!outcome) break;
        }
        outcome_ = std::move(outcome);
        job_ = nullptr;
        lock.unlock();
        wake_();
        lock.lock();
    }
}

}  // namespace lockstep
