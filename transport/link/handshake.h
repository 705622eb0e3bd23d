// The handshake of the peer port: who connects to whom, for what, and whether that is let in. Pure functions over
// bytes and values; tests/fuzz feeds the parsers garbage.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::link {

inline constexpr std::uint32_t kProtocolVersion = 1;
// The longest hello or answer on the wire, prelude included.
inline constexpr std::size_t kMaxHandshakeBytes = 1024;

// 128 random bits that stand for the right to one incoming lane.
using LaneToken = std::array<std::byte, 16>;

enum class LinkKind : std::uint8_t { control, lane };

struct Hello {
    std::uint32_t version = kProtocolVersion;
    std::uint64_t cluster_id = 0;
    ReplicaId sender;
    ReplicaId target;
    Incarnation incarnation;
    std::uint64_t ring_bytes = 0;
    LinkKind kind = LinkKind::control;
    LaneToken token{};  // kind lane only
};

struct Answer {
    bool ok = false;
    ReplicaId replica;
    Incarnation incarnation;
    std::string refusal;
};

// A message and how many bytes it took: more bytes may stand behind it.
template <class Message>
struct Parsed {
    Message message;
    std::size_t bytes = 0;
};

std::string encode(const Hello& hello);
std::string encode(const Answer& answer);  // cuts a long refusal so that it fits

// None if more bytes are needed; an error, as soon as it can be known, if these are no handshake of Lockstep's.
Result<std::optional<Parsed<Hello>>> parse_hello(std::span<const std::byte> bytes);
Result<std::optional<Parsed<Answer>>> parse_answer(std::span<const std::byte> bytes);

// Who a replica is, as far as the handshake asks.
struct Identity {
    std::uint64_t cluster_id = 0;
    ReplicaId id;
    Incarnation incarnation;
    std::uint64_t ring_bytes = 0;
    std::vector<ReplicaId> peers;
};

// Whether the replica `self` lets `hello` in (F7). The error is the refusal's text: it says what differs and what to
// do, and gives nothing away that the sender has not said itself. The right to a lane is looked at elsewhere.
Result<void> judge(const Hello& hello, const Identity& self);

}  // namespace lockstep::transport::link
