// What replicas say to each other over the control link to connect their queue pairs. Fixed bytes, little endian; pure
// functions, which tests/fuzz feeds garbage.
#pragma once

#include "transport/link/handshake.h"
#include "transport/rdma/pair_address.h"
#include "transport/rdma/regions.h"
#include "transport/types.h"

#include <lockstep/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace lockstep::transport::rdma {

// "Make a control pair with me": the caller's end of it.
struct PairCall {
    PairAddress caller;
};
// "Let me into the lane that this token opens": the caller's end of it.
struct LaneCall {
    link::LaneToken token{};
    PairAddress caller;
};
using Call = std::variant<PairCall, LaneCall>;

// The end of a control pair at the replica that was called, and what can be reached through it.
struct PairReply {
    PairAddress callee;
    RemoteRange board;
    RemoteRange ring;
    RemoteRange slot;
};
struct LaneReply {};    // the caller may write
struct LaneRevoked {};  // later: it may not any more
struct Refused {
    std::string why;
};
using Reply = std::variant<PairReply, LaneReply, LaneRevoked, Refused>;

std::string encode(const Call& call);
std::string encode(const Reply& reply);  // cuts a long refusal
Result<Call> parse_call(std::span<const std::byte> bytes);
Result<Reply> parse_reply(std::span<const std::byte> bytes);

// What the holder of a lane needs, as it stands in a LaneAddress.
struct LaneDoorplate {
    link::LaneToken token{};
    PairAddress follower;
    RemoteRange ring;     // with the probe line behind it
};
LaneAddress encode(const LaneDoorplate& plate);
Result<LaneDoorplate> parse_address(const LaneAddress& address);

}  // namespace lockstep::transport::rdma
