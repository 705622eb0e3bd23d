// A point-in-time copy of a store, made by one thread while another one changes the store.
//
// The store is cut into shards. Whoever comes first copies a shard: the thread that writes the snapshot, or the store's
// own, right before it changes one that is not copied yet. So the store waits for one shard at most, and a snapshot
// takes more memory than one shard only for what was changed since it began.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace lockstep::counter {

class Saving {
 public:
    explicit Saving(std::size_t shards) : slots_(std::make_unique<Slot[]>(shards)), shards_(shards) {}

    // The store's thread: the shard is about to change; `copy(std::string&)` appends what it is now.
    template <class Copy>
    void before_change(std::size_t shard, Copy&& copy) {
        Slot& slot = slots_[shard];
        if (slot.state.load(std::memory_order_acquire) == State::copied) return;
        if (claim(slot)) {
            slot.copy = std::make_unique<std::string>();
            copy(*slot.copy);
            copied(slot);
        } else {
            slot.state.wait(State::copying, std::memory_order_acquire);
        }
    }
    // The store's thread: all of it is about to go. What is not copied yet never will be.
    void cancel() {
        cancelled_.store(true, std::memory_order_relaxed);
        for (std::size_t shard = 0; shard < shards_; ++shard) before_change(shard, [](std::string&) {});
    }

    // The writer's thread: appends the shard as it was when the saving began. False once it is cancelled.
    template <class Copy>
    bool take(std::size_t shard, std::string& out, Copy&& copy) {
        Slot& slot = slots_[shard];
        if (claim(slot)) {
            copy(out);
            copied(slot);
        } else {
            slot.state.wait(State::copying, std::memory_order_acquire);
            if (slot.copy) out += *std::exchange(slot.copy, nullptr);
        }
        return !cancelled_.load(std::memory_order_acquire);
    }
    // The writer's thread: no shard is looked at any more.
    void end() { ended_.store(true, std::memory_order_release); }
    bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
    enum class State : std::uint8_t { untouched, copying, copied };
    struct Slot {
        std::atomic<State> state{State::untouched};
        std::unique_ptr<std::string> copy;  // by the store's thread, until the writer takes it
    };

    static bool claim(Slot& slot) {
        State expected = State::untouched;
        return slot.state.compare_exchange_strong(expected, State::copying, std::memory_order_acq_rel);
    }
    static void copied(Slot& slot) {
        slot.state.store(State::copied, std::memory_order_release);
        slot.state.notify_one();
    }

    std::unique_ptr<Slot[]> slots_;
    std::size_t shards_;
    std::atomic<bool> cancelled_{false};
    std::atomic<bool> ended_{false};
};

}  // namespace lockstep::counter
