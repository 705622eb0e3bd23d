// The TCP transport's parsers, fed with what a stranger or a mad peer may send: handshakes both ways, the frames of a
// lane (into a small ring, between guards), the frames of a control connection. The first byte chooses which.
#include "transport/link/frames.h"
#include "transport/link/handshake.h"
#include "transport/tcp/lane_receiver.h"
#include "transport/link/memory.h"
#include "transport/tcp/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

using namespace lockstep;
using namespace lockstep::transport;
using namespace lockstep::transport::link;
using namespace lockstep::transport::tcp;

constexpr std::uint64_t kRingBytes = 4096;
constexpr Position kBase{1024};

void require(bool fact) {
    if (!fact) std::abort();
}

void handshake(std::span<const std::byte> bytes) {
    const Identity self{7, {2}, {22}, kRingBytes, {{1}, {3}}};
    if (const auto hello = parse_hello(bytes); hello && hello.value()) {
        require(hello.value()->bytes <= std::min(bytes.size(), kMaxHandshakeBytes));
        const auto judged = judge(hello.value()->message, self);
        require(judged.ok() || !judged.error().message().empty());
        require(encode(hello.value()->message).size() <= kMaxHandshakeBytes);
    } else {
        // What needs more bytes has room for them.
        require(!hello || bytes.size() < kMaxHandshakeBytes);
    }
    if (const auto answer = parse_answer(bytes); answer && answer.value()) {
        require(answer.value()->bytes <= std::min(bytes.size(), kMaxHandshakeBytes));
        for (const char letter : answer.value()->message.refusal) require(letter >= ' ' && letter <= '~');
        require(encode(answer.value()->message).size() <= kMaxHandshakeBytes);
    }
}

// The stream in receives of `step` bytes, every other one straight into the ring where that can be.
void lane(std::span<const std::byte> bytes, std::size_t step) {
    static const auto memory = RingMemory::map(kRingBytes);
    require(memory.ok());
    LaneReceiver receiver(memory.value(), kBase);
    const std::span<std::byte> ring = memory.value().ring();
    bool straight = false;
    while (!bytes.empty()) {
        std::size_t count = std::min(bytes.size(), step);
        const std::span<std::byte> rest = receiver.rest();
        if (!rest.empty())
            require(rest.data() >= ring.data() && rest.data() + rest.size() <= ring.data() + ring.size());
        straight = !straight && !rest.empty();
        if (straight) {
            count = std::min(count, rest.size());
            std::memcpy(rest.data(), bytes.data(), count);
            receiver.took(count);
        } else if (!receiver.take(bytes.first(count))) {
            break;
        }
        bytes = bytes.subspan(count);
        require(receiver.landed() >= kBase);
    }
}

void control(std::span<const std::byte> bytes, Expect expect, std::size_t step) {
    FrameBuffer buffer(expect, kRingBytes);
    std::size_t cut = 0;
    const std::size_t all = bytes.size();
    while (!bytes.empty()) {
        const std::span<std::byte> room = buffer.room();
        require(!room.empty());
        const std::size_t count = std::min({bytes.size(), room.size(), step});
        std::memcpy(room.data(), bytes.data(), count);
        buffer.add(count);
        bytes = bytes.subspan(count);
        for (;;) {
            const auto frame = buffer.next();
            if (!frame) return;
            if (!frame.value()) break;
            require(frame.value()->payload.size() == frame.value()->header.bytes);
            require(frame.value()->payload.size() <= kMaxMessageBytes);
            cut += sizeof(ControlHeader) + frame.value()->payload.size();
            require(cut <= all);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t count) {
    if (count == 0) return 0;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(input, count)).subspan(1);
    const std::size_t step = 1 + static_cast<std::size_t>(input[0] >> 2) * 7;
    switch (input[0] % 4) {
        case 0: handshake(bytes); break;
        case 1: lane(bytes, step); break;
        case 2: control(bytes, Expect::requests, step); break;
        default: control(bytes, Expect::answers, step); break;
    }
    return 0;
}
