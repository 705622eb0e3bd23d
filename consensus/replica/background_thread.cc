#include "consensus/replica/background_thread.h"

#include <utility>

namespace lockstep::replica {

BackgroundThread::BackgroundThread() : thread_([this] { loop(); }) {}

BackgroundThread::~BackgroundThread() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void BackgroundThread::run(std::function<void()> work) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(work));
    }
    changed_.notify_one();
}

void BackgroundThread::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
        if (ending_) break;
        std::function<void()> work = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        work();
        work = nullptr;  // what it holds may take its time, and may give more work
        lock.lock();
    }
    // Destroyed with the mutex free, for the same reason.
    const auto left = std::exchange(waiting_, {});
    lock.unlock();
}

}  // namespace lockstep::replica
