#include "transport/rdma/calls.h"

#include "transport/link/frames.h"

#include <cstring>

namespace lockstep::transport::rdma {
namespace {

enum class Kind : std::uint8_t {
    pair_call = 1,
    lane_call = 2,
    pair_reply = 3,
    lane_reply = 4,
    lane_revoked = 5,
    refused = 6,
    lane_address = 7,
};

constexpr std::size_t kMaxWhyBytes = 400;
static_assert(kMaxWhyBytes < link::kMaxCallBytes);

class Writer {
 public:
    explicit Writer(Kind kind) { put(kind); }
    template <class T>
    void put(const T& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(const PairAddress& address) {
        put(address.number);
        put(address.first_psn);
        put(address.lid);
        put(address.mtu);
        put(address.reads);
        put(address.gid);
    }
    void put(const RemoteRange& range) {
        put(range.address);
        put(range.key);
    }
    void put(const std::string& text) { bytes_ += text; }
    std::string take() { return std::move(bytes_); }

 private:
    std::string bytes_;
};

class Reader {
 public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
    template <class T>
    T get() {
        T value{};
        enough_ = enough_ && bytes_.size() >= sizeof value;
        if (!enough_) return value;
        std::memcpy(&value, bytes_.data(), sizeof value);
        bytes_ = bytes_.subspan(sizeof value);
        return value;
    }
    PairAddress address() {
        PairAddress out;
        out.number = get<std::uint32_t>();
        out.first_psn = get<std::uint32_t>();
        out.lid = get<std::uint16_t>();
        out.mtu = get<std::uint8_t>();
        out.reads = get<std::uint8_t>();
        out.gid = get<Gid>();
        sound_ = sound_ && sound(out);
        return out;
    }
    RemoteRange range() {
        RemoteRange out;
        out.address = get<std::uint64_t>();
        out.key = get<std::uint32_t>();
        return out;
    }
    // It is a person that reads it: no control characters.
    std::string rest() {
        std::string text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
        for (char& letter : text)
            if (letter < ' ' || letter > '~') letter = '?';
        bytes_ = {};
        return text;
    }
    bool whole() const { return enough_ && bytes_.empty() && sound_; }

 private:
    std::span<const std::byte> bytes_;
    bool enough_ = true;
    bool sound_ = true;
};

template <class T, class Value>
Result<T> if_whole(const Reader& reader, Value&& value) {
    if (reader.whole()) return T(std::forward<Value>(value));
    return Error("its call over the control link makes no sense: run the same release of Lockstep on all replicas");
}

}  // namespace

std::string encode(const Call& call) {
    if (const auto* pair = std::get_if<PairCall>(&call)) {
        Writer writer(Kind::pair_call);
        writer.put(pair->caller);
        return writer.take();
    }
    const auto& lane = std::get<LaneCall>(call);
    Writer writer(Kind::lane_call);
    writer.put(lane.token);
    writer.put(lane.caller);
    return writer.take();
}

std::string encode(const Reply& reply) {
    if (const auto* pair = std::get_if<PairReply>(&reply)) {
        Writer writer(Kind::pair_reply);
        writer.put(pair->callee);
        writer.put(pair->board);
        writer.put(pair->ring);
        writer.put(pair->slot);
        return writer.take();
    }
    if (const auto* refused = std::get_if<Refused>(&reply)) {
        Writer writer(Kind::refused);
        writer.put(refused->why.substr(0, kMaxWhyBytes));
        return writer.take();
    }
    return Writer(std::holds_alternative<LaneReply>(reply) ? Kind::lane_reply : Kind::lane_revoked).take();
}

Result<Call> parse_call(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    const auto kind = reader.get<Kind>();
    if (kind == Kind::pair_call) {
        const PairAddress caller = reader.address();
        return if_whole<Call>(reader, PairCall{caller});
    }
    const auto token = reader.get<link::LaneToken>();
    const PairAddress caller = reader.address();
    if (kind != Kind::lane_call) return Error("a call of unknown kind " + std::to_string(static_cast<int>(kind)));
    return if_whole<Call>(reader, LaneCall{token, caller});
}

Result<Reply> parse_reply(std::span<const std::byte> bytes) {
    Reader reader(bytes);
    const auto kind = reader.get<Kind>();
    switch (kind) {
        case Kind::pair_reply: {
            PairReply reply;
            reply.callee = reader.address();
            reply.board = reader.range();
            reply.ring = reader.range();
            reply.slot = reader.range();
            return if_whole<Reply>(reader, reply);
        }
        case Kind::lane_reply: return if_whole<Reply>(reader, LaneReply{});
        case Kind::lane_revoked: return if_whole<Reply>(reader, LaneRevoked{});
        case Kind::refused: return if_whole<Reply>(reader, Refused{reader.rest()});
        default: return Error("a reply of unknown kind " + std::to_string(static_cast<int>(kind)));
    }
}

// The token comes first, by itself: it opens the lane over TCP as well.
LaneAddress encode(const LaneDoorplate& plate) {
    Writer writer(Kind::lane_address);
    writer.put(plate.follower);
    writer.put(plate.ring);
    const std::string rest = writer.take();
    LaneAddress address;
    static_assert(sizeof(link::LaneToken) + 1 + 28 + 12 <= LaneAddress::kMaxBytes);
    std::memcpy(address.bytes.data(), plate.token.data(), sizeof(link::LaneToken));
    std::memcpy(address.bytes.data() + sizeof(link::LaneToken), rest.data(), rest.size());
    address.size = static_cast<std::uint8_t>(sizeof(link::LaneToken) + rest.size());
    return address;
}

Result<LaneDoorplate> parse_address(const LaneAddress& address) {
    if (address.size > LaneAddress::kMaxBytes) return Error("a lane address longer than any");
    LaneDoorplate plate;
    const std::size_t token_bytes = std::min<std::size_t>(address.size, sizeof plate.token);
    std::memcpy(plate.token.data(), address.bytes.data(), token_bytes);
    Reader reader(std::span(address.bytes).first(address.size).subspan(token_bytes));
    const auto kind = reader.get<Kind>();
    plate.follower = reader.address();
    plate.ring = reader.range();
    if (kind == Kind::lane_address && reader.whole()) return plate;
    return Error("a lane address of " + std::to_string(address.size) + " bytes is not one of the RDMA transport");
}

}  // namespace lockstep::transport::rdma
