// Any bytes as a control message: an error, or a message that is in bounds and comes out the same once more.
#include "consensus/replica/codec.h"
#include "log/check.h"
#include "tests/unit/replica/random_message.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

using namespace lockstep;

void check_bounds(const core::VoterSet& set) {
    LOCKSTEP_CHECK_OP(set.size(), <=, kMaxReplicas);
    for (const core::Voter& voter : set.all()) {
        LOCKSTEP_CHECK(static_cast<bool>(voter.id));
        LOCKSTEP_CHECK(static_cast<bool>(voter.incarnation));
        for (const core::Voter& other : set.all()) LOCKSTEP_CHECK(&voter == &other || voter.id != other.id);
    }
}

void check_bounds(const core::Form& form) {
    LOCKSTEP_CHECK_OP(form.voters.voters.size(), >=, 1);
    check_bounds(form.voters.voters);
    check_bounds(form.voters.next);
}

void check_bounds(const core::Promise& promise) {
    LOCKSTEP_CHECK_OP(promise.lane.size, <=, transport::LaneAddress::kMaxBytes);
    LOCKSTEP_CHECK_OP(promise.commit.position.value, <=, promise.last.position.value);
    for (const Position at : {promise.last.position, promise.commit.position, promise.low_mark, promise.consumed})
        LOCKSTEP_CHECK_OP(at.value % log::kEntryAlignment, ==, 0);
}

template <class Other>
void check_bounds(const Other&) {}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    const auto decoded = replica::decode(std::as_bytes(std::span(bytes, count)));
    if (!decoded) {
        LOCKSTEP_CHECK(!decoded.error().message().empty());
        return 0;
    }
    std::visit([](const auto& kind) { check_bounds(kind); }, decoded.value());
    std::vector<std::byte> encoded;
    replica::encode(decoded.value(), encoded);
    const auto again = replica::decode(encoded);
    LOCKSTEP_CHECK(again.ok());
    LOCKSTEP_CHECK(core::same(again.value(), decoded.value()));
    return 0;
}
