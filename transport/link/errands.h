// What other threads have the protocol thread do.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::transport::link {

class Errands {
 public:
    // Any thread.
    void put(std::function<void()> errand) {
        const std::lock_guard lock(mutex_);
        errands_.push_back(std::move(errand));
        filled_.store(true, std::memory_order_release);
    }
    // Protocol thread. `empty` costs one load.
    bool empty() const { return !filled_.load(std::memory_order_acquire); }
    void run() {
        if (empty()) return;
        std::vector<std::function<void()>> now;
        {
            const std::lock_guard lock(mutex_);
            now.swap(errands_);
            filled_.store(false, std::memory_order_relaxed);
        }
        for (const auto& errand : now) errand();
    }

 private:
    std::atomic<bool> filled_{false};
    std::mutex mutex_;
    std::vector<std::function<void()>> errands_;  // under mutex_
};

}  // namespace lockstep::transport::link
