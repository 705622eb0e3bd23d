#include "transport/link/frames.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>

namespace lockstep::transport::link {
namespace {

// Less room than this at the buffer's end is not worth a receive: what is left moves to its start.
constexpr std::size_t kLeastRoomBytes = 16 * 1024;
static_assert(kLeastRoomBytes < kMaxMessageBytes);

std::string number(std::uint64_t value) { return std::to_string(value); }

Result<void> check_length(const ControlHeader& header, std::size_t least, std::size_t most) {
    if (header.bytes >= least && header.bytes <= most) return {};
    return Error("control frame of kind " + number(static_cast<std::uint32_t>(header.kind)) + " with " +
                 number(header.bytes) + " bytes behind it: " + number(least) + " to " + number(most) + " are allowed");
}

Result<void> check_range(const ControlHeader& header, std::uint64_t ring_bytes) {
    if (header.wanted == 0 || header.wanted > kMaxTransferBytes)
        return Error("ring read of " + number(header.wanted) + " bytes: 1 to " + number(kMaxTransferBytes) +
                     " are allowed");
    if (header.wanted > ring_bytes || (header.at & (ring_bytes - 1)) + header.wanted > ring_bytes)
        return Error("ring read of " + number(header.wanted) + " bytes at " + number(header.at) +
                     " crosses the ring's end");
    return {};
}

}  // namespace

Result<void> check(const ControlHeader& header, Expect expect, std::uint64_t ring_bytes) {
    if (expect == Expect::requests) {
        switch (header.kind) {
            case ControlKind::message: return check_length(header, 0, kMaxMessageBytes);
            case ControlKind::report: return check_length(header, sizeof(Report), sizeof(Report));
            case ControlKind::ask_board: return check_length(header, 0, 0);
            case ControlKind::ask_ring:
                if (auto length = check_length(header, 0, 0); !length) return length;
                return check_range(header, ring_bytes);
            case ControlKind::call: return check_length(header, 1, kMaxCallBytes);
            default: break;
        }
    } else {
        switch (header.kind) {
            case ControlKind::board: return check_length(header, sizeof(Board), sizeof(Board));
            case ControlKind::ring: return check_length(header, 1, kMaxPieceBytes);
            case ControlKind::reply: return check_length(header, 0, kMaxCallBytes);
            default: break;
        }
    }
    return Error("control frame of kind " + number(static_cast<std::uint32_t>(header.kind)) +
                 (expect == Expect::requests ? ": no request" : ": no answer"));
}

FrameBuffer::FrameBuffer(Expect expect, std::uint64_t ring_bytes)
    : expect_(expect), ring_bytes_(ring_bytes), bytes_(2 * kMaxFrameBytes) {}

std::span<std::byte> FrameBuffer::room() {
    if (begin_ == end_) {
        begin_ = end_ = 0;
    } else if (bytes_.size() - end_ < kLeastRoomBytes) {
        std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    return std::span(bytes_).subspan(end_);
}

void FrameBuffer::add(std::size_t count) {
    LOCKSTEP_CHECK_OP(count, <=, bytes_.size() - end_);
    end_ += count;
}

Result<std::optional<FrameBuffer::Frame>> FrameBuffer::next() {
    const std::size_t there = end_ - begin_;
    if (there < sizeof(ControlHeader)) return std::optional<Frame>();
    Frame frame;
    std::memcpy(&frame.header, bytes_.data() + begin_, sizeof frame.header);
    if (auto sound = check(frame.header, expect_, ring_bytes_); !sound) return std::move(sound).error();
    if (there - sizeof frame.header < frame.header.bytes) return std::optional<Frame>();
    frame.payload = std::span<const std::byte>(bytes_).subspan(begin_ + sizeof frame.header, frame.header.bytes);
    begin_ += sizeof frame.header + frame.header.bytes;
    return std::optional<Frame>(frame);
}

}  // namespace lockstep::transport::link
