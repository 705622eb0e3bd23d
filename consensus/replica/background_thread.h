// A thread for work that the protocol's thread must not wait for.
#pragma once

#include "consensus/replica/background.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::replica {

// One piece of work at a time, in the order given.
class BackgroundThread final : public Background {
 public:
    BackgroundThread();
    // Waits for the work that runs. What has not begun is destroyed, on the thread, without being done.
    ~BackgroundThread() override;
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    // Any thread.
    void run(std::function<void()> work) override;

 private:
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace lockstep::replica
