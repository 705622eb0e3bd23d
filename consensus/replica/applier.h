// Applies what is committed, batch by batch, and answers those who proposed it.
#pragma once

#include "consensus/core/core.h"

#include <lockstep/replica.h>
#include <lockstep/state_machine.h>

#include <cstdint>
#include <vector>

namespace lockstep::replica {

// Not thread-safe; everything runs on the protocol thread. Callbacks may push new requests, but not call back here.
class Applier {
 public:
    explicit Applier(StateMachine& state_machine);

    // The command at `index` was appended by this leader; `done` is taken, and waits for its end. Rising indices. May
    // be called by a callback that `apply_some` calls, if there is room.
    void expect(Index index, Replica::Done& done) {
        if (!has_room()) grow();
        Expected& slot = expected(expected_end_++);
        slot.index = index;
        slot.done.swap(done);
    }
    // Whether one more is expected without taking memory anew.
    bool has_room() const { return expected_end_ - expected_begin_ <= expected_mask_; }
    // How many are expected.
    std::size_t waiting() const { return expected_end_ - expected_begin_; }
    // Applies the next batch of what `core` has committed, at most kMaxEntries entries and about kMaxBytes bytes, and
    // answers its proposers. Returns how far the log is applied now.
    log::Point apply_some(const core::Core& core);
    // Ends all that was expected, as unknown (S17).
    void lose_all();

    static constexpr std::size_t kMaxEntries = 1024;
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

 private:
    struct Expected {
        Index index;
        Replica::Done done;
    };
    Expected& expected(std::uint64_t number) { return expected_[number & expected_mask_]; }
    void grow();
    void answer(std::span<const Entry> batch);

    StateMachine& state_machine_;
    // A ring of slots, expected_mask_ + 1 of them, a power of two; those of [expected_begin_, expected_end_) wait.
    std::vector<Expected> expected_;
    std::uint64_t expected_mask_;
    std::uint64_t expected_begin_ = 0;
    std::uint64_t expected_end_ = 0;
    std::vector<Entry> batch_;  // kMaxEntries places, of which a batch takes the first
    Replies replies_;
};

}  // namespace lockstep::replica
