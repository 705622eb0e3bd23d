// Ends the protocol thread's sleep.
#pragma once

#include <lockstep/result.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace lockstep::transport::link {

class Waker {
 public:
    static Result<std::unique_ptr<Waker>> make();
    ~Waker();
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;

    // Any thread, does not block. Costs a system call only if the protocol thread sleeps.
    void wake() {
        called_.store(true);
        if (asleep_.load() && asleep_.exchange(false)) signal();
    }

    // Protocol thread. `fall_asleep` before it waits on `descriptor`: false if it was called meanwhile, and must not.
    // `rise` afterwards.
    bool fall_asleep() {
        asleep_.store(true);
        if (!called_.load()) return true;
        asleep_.store(false);
        return false;
    }
    void rise() { asleep_.store(false, std::memory_order_relaxed); }
    // Whether `wake` was called since the last `take`.
    bool called() const { return called_.load(std::memory_order_acquire); }
    bool take() { return called() && called_.exchange(false); }

    // An eventfd: readable after a `wake` in sleep; whoever waits on it reads it.
    int descriptor() const { return descriptor_; }

 private:
    explicit Waker(int descriptor) : descriptor_(descriptor) {}
    void signal();

    int descriptor_;
    std::atomic<bool> called_{false};
    std::atomic<bool> asleep_{false};
};

}  // namespace lockstep::transport::link
