#include "consensus/replica/disk_thread.h"

#include <utility>

namespace lockstep {

DiskThread::DiskThread(log::Disk& disk, std::function<void()> wake, std::unique_ptr<log::DiskQueue> queue)
    : disk_(disk), wake_(std::move(wake)), queue_(std::move(queue)), thread_([this] { run(); }) {}

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
        if (!take_queued() || job_ != nullptr) return false;
        if (outcome_) {
            wal.finish(*outcome_);
            outcome_.reset();
            ended = true;
        }
        const log::DiskJob* const next = wal.next();
        if (next == nullptr) return ended;
        if (queue_ != nullptr && queue_->begin(next->operations())) {
            queued_ = next;
            operation_since_ = std::chrono::steady_clock::now();
            return ended;
        }
        job_ = next;
    }
    begun_.notify_one();
    return ended;
}

// False while the kernel is at a job. What it leaves unfinished the thread performs, from the beginning: the bytes, and
// where they go, are the same.
bool DiskThread::take_queued() {
    if (queued_ == nullptr) return true;
    const auto ended = queue_->ended();
    if (!ended) return false;
    operation_since_.reset();
    const log::DiskJob* const job = std::exchange(queued_, nullptr);
    switch (*ended) {
        case log::DiskQueue::Ended::done: outcome_ = Result<void>(); break;
        case log::DiskQueue::Ended::failed: outcome_ = queue_->error(); break;
        case log::DiskQueue::Ended::unfinished:
            job_ = job;
            begun_.notify_one();
            break;
    }
    return true;
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
