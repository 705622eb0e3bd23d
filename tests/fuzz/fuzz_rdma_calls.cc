// What replicas say to each other to connect queue pairs, fed with what a mad peer may send: calls, replies and lane
// addresses. What is taken comes back the same when it is encoded again, and nothing that cannot be is given to a card.
#include "transport/link/frames.h"
#include "transport/rdma/calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <variant>

namespace {

using namespace lockstep::transport;
using namespace lockstep::transport::rdma;

void require(bool fact) {
    if (!fact) std::abort();
}

bool same(const std::string& encoded, std::span<const std::byte> bytes) {
    return encoded.size() == bytes.size() && std::memcmp(encoded.data(), bytes.data(), bytes.size()) == 0;
}

void call(std::span<const std::byte> bytes) {
    const auto parsed = parse_call(bytes);
    if (!parsed) return require(!parsed.error().message().empty());
    std::visit([](const auto& one) { require(sound(one.caller)); }, parsed.value());
    require(same(encode(parsed.value()), bytes));
}

void reply(std::span<const std::byte> bytes) {
    const auto parsed = parse_reply(bytes);
    if (!parsed) return require(!parsed.error().message().empty());
    require(encode(parsed.value()).size() <= link::kMaxCallBytes);
    if (const auto* refused = std::get_if<Refused>(&parsed.value())) {
        for (const char letter : refused->why) require(letter >= ' ' && letter <= '~');
        return;
    }
    if (const auto* pair = std::get_if<PairReply>(&parsed.value())) require(sound(pair->callee));
    require(same(encode(parsed.value()), bytes));
}

void address(std::span<const std::byte> bytes) {
    LaneAddress given;
    const std::size_t count = std::min(bytes.size(), given.bytes.size());
    std::copy_n(bytes.begin(), count, given.bytes.begin());
    given.size = static_cast<std::uint8_t>(bytes.size());
    const auto parsed = parse_address(given);
    if (!parsed) return require(!parsed.error().message().empty());
    require(sound(parsed.value().follower));
    const LaneAddress again = encode(parsed.value());
    require(again.size == given.size && std::equal(bytes.begin(), bytes.begin() + again.size, again.bytes.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t count) {
    if (count == 0) return 0;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(input, count)).subspan(1);
    switch (input[0] % 3) {
        case 0: call(bytes); break;
        case 1: reply(bytes); break;
        default: address(bytes); break;
    }
    return 0;
}
