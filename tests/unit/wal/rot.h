// A log of some laps, in which bits turn over.
#pragma once

#include "tests/unit/wal/wal_world.h"

namespace lockstep::log {

inline constexpr std::uint64_t kRing = 2048;

// Batches of `entries` each, until the log ends behind `behind`.
inline void fill(WalWorld& world, std::uint64_t behind, int entries = 3) {
    while (world.tail.position.value < behind) {
        for (int count = 0; count < entries; ++count) world.append_entry(20);
        world.hand_over();
        world.work_all();
    }
}

inline FileName segment_of(Position position) { return segment_name(1, Position{position.value / kRing * kRing}); }

inline void flip(WalWorld& world, Position position, unsigned bit = 3) {
    world.disk.flip_bit(segment_of(position), kSegmentDataOffset + position.value % kRing, bit);
}

}  // namespace lockstep::log
