// The receiving end of a lane: turns its stream of bytes into landings in the ring. No sockets and no threads in here;
// who calls holds the lane's right (gate.h) for as long as a call, or a receive into `rest`, takes.
#pragma once

#include "transport/link/memory.h"
#include "transport/tcp/wire.h"

#include <lockstep/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::transport::tcp {

class LaneReceiver {
 public:
    // `memory` must outlive this; frames from `base` on are taken.
    LaneReceiver(const link::RingMemory& memory, Position base) : memory_(memory), end_(base), landed_(base) {}

    // Takes bytes in the order of the stream, from a buffer. The error says what is wrong with a frame; nothing of
    // that frame or behind it has come to the ring, and no more may be taken.
    Result<void> take(std::span<const std::byte> bytes);

    // Where in the ring the next bytes of the stream go: the rest of the frame whose header was taken; empty if no
    // frame is open. The bytes may be received straight to there, and then `took` must be told how many.
    std::span<std::byte> rest() const { return rest_; }
    void took(std::size_t count);

    // How many frames have landed wholly, and where the last one that was a write ended (at first: base).
    std::uint64_t count() const { return count_; }
    Position landed() const { return landed_; }

 private:
    Result<void> open_frame();

    const link::RingMemory& memory_;
    std::array<std::byte, sizeof(LaneHeader)> header_{};
    std::size_t header_bytes_ = 0;     // of header_ that are there
    std::span<std::byte> rest_;
    Position end_;                     // of the newest frame, landed or open
    Position landed_;
    std::uint64_t count_ = 0;
};

}  // namespace lockstep::transport::tcp
