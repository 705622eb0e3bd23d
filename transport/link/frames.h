// The bytes of a control connection after the handshake: requests one way, answers the other. All numbers are little
// endian, as in the log. Everything here is a pure function of bytes; tests/fuzz feeds it garbage.
#pragma once

#include "transport/types.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::transport::link {

static_assert(std::endian::native == std::endian::little, "headers go to the wire as they lie in memory");

enum class ControlKind : std::uint32_t {
    message = 1,    // request: the message follows
    report = 2,     // request: the Report follows
    ask_board = 3,  // request
    ask_ring = 4,   // request: read `number` of [at, at + wanted)
    board = 5,      // answer: the Board follows
    ring = 6,       // answer: the next piece of read `number`, from `at` on, follows
    call = 7,       // request: a call of the transport's own, `number`, follows
    reply = 8,      // answer: to call `number`; one call can have several
};

struct ControlHeader {
    ControlKind kind = ControlKind::message;
    std::uint32_t bytes = 0;   // that follow the header
    std::uint64_t number = 0;
    std::uint64_t at = 0;
    std::uint64_t wanted = 0;
};
static_assert(sizeof(ControlHeader) == 32);

// The longest call or reply, in bytes.
inline constexpr std::size_t kMaxCallBytes = 512;

// Which frames a connection's end expects.
enum class Expect : std::uint8_t { requests, answers };

// A ring read is answered in pieces of at most this, so that a board is never stuck behind a long read.
inline constexpr std::size_t kMaxPieceBytes = kMaxMessageBytes;
// Ring reads that one peer may have unanswered on its control connection.
inline constexpr std::size_t kMaxUnansweredReads = 16;

Result<void> check(const ControlHeader& header, Expect expect, std::uint64_t ring_bytes);

// Cuts the bytes of a control connection into frames. Fixed memory, taken at construction.
class FrameBuffer {
 public:
    struct Frame {
        ControlHeader header;
        std::span<const std::byte> payload;  // valid until the next call of `room`
    };

    FrameBuffer(Expect expect, std::uint64_t ring_bytes);

    // Where the next bytes go. Never empty when `next` has said "no more" before.
    std::span<std::byte> room();
    // `count` bytes have been put at the start of `room`.
    void add(std::size_t count);
    // The next frame that is there wholly; none if more bytes are needed; an error if the stream makes no sense, and
    // then it never will again.
    Result<std::optional<Frame>> next();
    void clear() { begin_ = end_ = 0; }
    // For a handshake, which comes first on the same stream: what is there, and to leave its first `count` bytes out.
    std::span<const std::byte> uncut() const { return std::span(bytes_).subspan(begin_, end_ - begin_); }
    void skip(std::size_t count) { begin_ += count; }

 private:
    static constexpr std::size_t kMaxFrameBytes = sizeof(ControlHeader) + kMaxMessageBytes;

    Expect expect_;
    std::uint64_t ring_bytes_;
    std::vector<std::byte> bytes_;
    std::size_t begin_ = 0;  // [begin_, end_) is not cut yet
    std::size_t end_ = 0;
};

}  // namespace lockstep::transport::link
