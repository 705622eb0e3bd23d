// The bytes of a lane over TCP, after the handshake: holder to follower frames, back acknowledgements. All numbers are
// little endian, as in the log. Everything here is a pure function of bytes; tests/fuzz feeds it garbage.
#pragma once

#include "transport/types.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <bit>
#include <cstdint>

namespace lockstep::transport::tcp {

static_assert(std::endian::native == std::endian::little, "headers go to the wire as they lie in memory");

// Back come acknowledgements: the count of frames landed so far, as one u64 each.
enum class LaneKind : std::uint16_t {
    write = 1,  // `bytes` bytes follow, for the ring at `at`
    probe = 2,  // none follow; `at` is the number for the probe line
};

inline constexpr std::uint16_t kLaneMark = 0x6b4c;  // stands in each header: a stream out of step is noticed at once

struct LaneHeader {
    std::uint64_t at = 0;
    std::uint32_t bytes = 0;
    LaneKind kind = LaneKind::write;
    std::uint16_t mark = kLaneMark;
};
static_assert(sizeof(LaneHeader) == 16);

// Ring writes start at a multiple of this: probes and entry headers are aligned words in the peer's memory.
inline constexpr std::uint64_t kWriteAlignment = 8;

// Whether a lane whose frames so far reach to `end` may go on with `header`: inside one lap, not before `end`, and less
// than a ring beyond it. The error says which of these does not hold.
Result<void> check(const LaneHeader& header, Position end, std::uint64_t ring_bytes);

}  // namespace lockstep::transport::tcp
