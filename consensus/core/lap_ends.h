// Where the bytes of a lap end: at its pad's header if it has one, whose body is never sent.
#pragma once

#include "log/ring.h"

#include <lockstep/types.h>

#include <array>
#include <cstdint>

namespace lockstep::core {

// Remembers the pads of the laps that a ring can hold a part of: the present one and the one before. For a lap that
// it does not know it says "to the end", which is always right, only longer.
class LapEnds {
 public:
    explicit LapEnds(std::uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

    // A pad starts there: committed, or in the log that this replica leads with.
    void note_pad(Position start) {
        const std::uint64_t lap = start.value / ring_bytes_;
        ends_[lap % ends_.size()] = {lap, start + sizeof(log::EntryHeader)};
    }
    // The lap's entries from `from` on are about to be replaced: forget a pad that was among them.
    void forget_from(Position from) {
        for (LapEnd& end : ends_)
            if (end.data_end > from) end = {};
    }
    // Where the bytes end of the lap that `position` is in.
    Position data_end(Position position) const {
        const std::uint64_t lap = position.value / ring_bytes_;
        const LapEnd& end = ends_[lap % ends_.size()];
        if (end.data_end.value != 0 && end.lap == lap) return end.data_end;
        return {(lap + 1) * ring_bytes_};
    }
    // The next place that has bytes: `position`, or the start of the next lap if it is in a pad's body.
    Position skip_pad_body(Position position) const {
        const Position end = data_end(position);
        if (position < end) return position;
        return {(position.value / ring_bytes_ + 1) * ring_bytes_};
    }

 private:
    struct LapEnd {
        std::uint64_t lap = 0;
        Position data_end;
    };
    std::uint64_t ring_bytes_;
    std::array<LapEnd, 2> ends_{};
};

}  // namespace lockstep::core
