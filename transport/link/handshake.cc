#include "transport/link/handshake.h"

#include "proto/handshake.pb.h"

#include <algorithm>
#include <cstring>

namespace lockstep::transport::link {
namespace {

// Two magics: a connection that the kernel has looped back to itself (possible when a port of the ephemeral range is
// dialled while nobody listens) sees its own hello, which must not pass for an answer.
constexpr std::uint32_t kHelloMagic = 0x48534b4c;   // "LKSH"
constexpr std::uint32_t kAnswerMagic = 0x41534b4c;  // "LKSA"

struct Prelude {
    std::uint32_t magic = 0;
    std::uint32_t bytes = 0;  // of the message behind it
};
static_assert(sizeof(Prelude) == 8);

constexpr std::size_t kMaxRefusalBytes = 700;
static_assert(kMaxRefusalBytes + 100 < kMaxHandshakeBytes);

template <class Message>
std::string with_prelude(std::uint32_t magic, const Message& message) {
    const Prelude prelude{magic, static_cast<std::uint32_t>(message.ByteSizeLong())};
    std::string out(sizeof prelude, '\0');
    std::memcpy(out.data(), &prelude, sizeof prelude);
    message.AppendToString(&out);
    return out;
}

// How long the message behind the prelude is; none if it is not there wholly.
Result<std::optional<std::size_t>> body_bytes(std::span<const std::byte> bytes, std::uint32_t magic) {
    Prelude prelude{magic, 0};
    std::memcpy(&prelude, bytes.data(), std::min(bytes.size(), sizeof prelude));
    // The magic is looked at byte by byte as they come, so that a stranger who sends two bytes is not waited for.
    if (std::memcmp(&prelude.magic, &magic, std::min(bytes.size(), sizeof magic)) != 0)
        return Error("these bytes are no Lockstep handshake: something else uses the peer port");
    if (prelude.bytes > kMaxHandshakeBytes - sizeof prelude)
        return Error("handshake of " + std::to_string(prelude.bytes) + " bytes: at most " +
                     std::to_string(kMaxHandshakeBytes - sizeof prelude) + " are allowed");
    if (bytes.size() < sizeof prelude + prelude.bytes || bytes.size() < sizeof prelude)
        return std::optional<std::size_t>();
    return std::optional<std::size_t>(prelude.bytes);
}

template <class Message>
bool parse_body(Message& message, std::span<const std::byte> bytes, std::size_t count) {
    return message.ParseFromArray(bytes.data() + sizeof(Prelude), static_cast<int>(count));
}

std::string name(ReplicaId id) { return "r" + std::to_string(id.value); }

ReplicaId replica_id(std::uint32_t value) { return {static_cast<std::uint8_t>(value <= 255 ? value : 0)}; }

}  // namespace

std::string encode(const Hello& hello) {
    proto::Hello message;
    message.set_protocol_version(hello.version);
    message.set_cluster_id(hello.cluster_id);
    message.set_sender(hello.sender.value);
    message.set_target(hello.target.value);
    message.set_sender_incarnation(hello.incarnation.value);
    message.set_ring_bytes(hello.ring_bytes);
    message.set_kind(hello.kind == LinkKind::lane ? proto::Hello::LANE : proto::Hello::CONTROL);
    if (hello.kind == LinkKind::lane) message.set_lane_token(hello.token.data(), hello.token.size());
    return with_prelude(kHelloMagic, message);
}

std::string encode(const Answer& answer) {
    proto::Answer message;
    message.set_protocol_version(kProtocolVersion);
    message.set_ok(answer.ok);
    message.set_replica(answer.replica.value);
    message.set_incarnation(answer.incarnation.value);
    message.set_refusal(answer.refusal.substr(0, kMaxRefusalBytes));
    return with_prelude(kAnswerMagic, message);
}

Result<std::optional<Parsed<Hello>>> parse_hello(std::span<const std::byte> bytes) {
    auto count = body_bytes(bytes, kHelloMagic);
    if (!count) return std::move(count).error();
    if (!count.value()) return std::optional<Parsed<Hello>>();
    proto::Hello message;
    if (!parse_body(message, bytes, *count.value())) return Error("a hello that cannot be parsed");
    Parsed<Hello> out;
    out.bytes = sizeof(Prelude) + *count.value();
    Hello& hello = out.message;
    hello.version = message.protocol_version();
    hello.cluster_id = message.cluster_id();
    hello.sender = replica_id(message.sender());
    hello.target = replica_id(message.target());
    hello.incarnation = {message.sender_incarnation()};
    hello.ring_bytes = message.ring_bytes();
    // Another version may name other kinds: it is refused for its version, by `judge`.
    if (hello.version != kProtocolVersion) return std::optional(out);
    if (message.kind() != proto::Hello::CONTROL && message.kind() != proto::Hello::LANE)
        return Error("a hello for an unknown kind of connection, " + std::to_string(message.kind()));
    hello.kind = message.kind() == proto::Hello::LANE ? LinkKind::lane : LinkKind::control;
    if (hello.kind == LinkKind::control) return std::optional(out);
    if (message.lane_token().size() != hello.token.size())
        return Error("a lane token of " + std::to_string(message.lane_token().size()) + " bytes: it has " +
                     std::to_string(hello.token.size()));
    std::memcpy(hello.token.data(), message.lane_token().data(), hello.token.size());
    return std::optional(out);
}

Result<std::optional<Parsed<Answer>>> parse_answer(std::span<const std::byte> bytes) {
    auto count = body_bytes(bytes, kAnswerMagic);
    if (!count) return std::move(count).error();
    if (!count.value()) return std::optional<Parsed<Answer>>();
    proto::Answer message;
    if (!parse_body(message, bytes, *count.value())) return Error("an answer to a hello that cannot be parsed");
    Parsed<Answer> out;
    out.bytes = sizeof(Prelude) + *count.value();
    out.message.ok = message.ok();
    out.message.replica = replica_id(message.replica());
    out.message.incarnation = {message.incarnation()};
    // It goes to logs and terminals: no control characters.
    out.message.refusal = message.refusal().substr(0, kMaxRefusalBytes);
    for (char& letter : out.message.refusal)
        if (letter < ' ' || letter > '~') letter = '?';
    return std::optional(out);
}

Result<void> judge(const Hello& hello, const Identity& self) {
    const std::string here = name(self.id) + " refuses " + name(hello.sender) + ": ";
    if (hello.version != kProtocolVersion)
        return Error(here + "it speaks protocol version " + std::to_string(hello.version) + ", not " +
                     std::to_string(kProtocolVersion) + ": run the same release of Lockstep on all replicas");
    if (hello.cluster_id != self.cluster_id)
        return Error(here + "its cluster id " + std::to_string(hello.cluster_id) +
                     " is another cluster's: give all replicas of a cluster the same cluster_id, and check the"
                     " addresses");
    if (hello.target != self.id)
        return Error(here + "it means to reach " + name(hello.target) + ": check that replica's address in its config");
    if (std::find(self.peers.begin(), self.peers.end(), hello.sender) == self.peers.end())
        return Error(here + "no peer of that id is known here: give all replicas the same list of members");
    if (!hello.incarnation) return Error(here + "it names no incarnation");
    if (hello.ring_bytes != self.ring_bytes)
        return Error(here + "its ring has " + std::to_string(hello.ring_bytes) + " bytes, not " +
                     std::to_string(self.ring_bytes) + ": give all replicas the same ring_bytes");
    return {};
}

}  // namespace lockstep::transport::link
