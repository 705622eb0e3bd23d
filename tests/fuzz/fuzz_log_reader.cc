// Any bytes as a ring's memory, any point, any limit: the reader never looks out of the ring or past the limit, and
// takes exactly what the naive reader takes.
//
// Input: one byte of options, the genesis, a point, how far the limit is from it, then the ring's bytes (zeros for what
// is missing). Since no fuzzer guesses a checksum, an option puts the right one into what stands at the point, and so
// lets the fuzzer at the checks around it.
#include "log/check.h"
#include "log/ring.h"
#include "tests/fuzz/input.h"
#include "tests/unit/log/naive_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

using namespace lockstep;
using namespace lockstep::log;

constexpr int kMaxEntries = 64;

// Exactly as large as the ring, so that a sanitizer sees a step over its end.
struct Memory {
    explicit Memory(std::size_t size)
        : bytes(static_cast<std::byte*>(::operator new(size, std::align_val_t{kEntryAlignment})), size) {
        std::ranges::fill(bytes, std::byte{0});
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { ::operator delete(bytes.data(), std::align_val_t{kEntryAlignment}); }
    std::span<std::byte> bytes;
};

void expect_same(const std::optional<VerifiedEntry>& found, const std::optional<NaiveEntry>& naive) {
    LOCKSTEP_CHECK_OP(found.has_value(), ==, naive.has_value());
    if (!found) return;
    LOCKSTEP_CHECK_OP(found->header.checksum, ==, naive->checksum);
    LOCKSTEP_CHECK_OP(found->header.index, ==, naive->index);
    LOCKSTEP_CHECK_OP(found->header.ballot, ==, naive->ballot);
    LOCKSTEP_CHECK_OP(found->header.commit, ==, naive->commit);
    LOCKSTEP_CHECK_OP(found->header.timestamp_ns, ==, naive->timestamp_ns);
    LOCKSTEP_CHECK_OP(found->header.length, ==, naive->length);
    LOCKSTEP_CHECK_OP(static_cast<std::uint8_t>(found->header.kind), ==, naive->kind);
    LOCKSTEP_CHECK_OP(found->end.position.value, ==, naive->end);
    LOCKSTEP_CHECK_OP(found->payload.size(), ==, naive->kind == 4 ? 0 : naive->length);
}

// What lies past the limit makes no difference.
void expect_blind_past(const Ring& ring, std::span<std::byte> memory, const Point& at, Position limit, bool found) {
    const std::uint64_t offset = at.position.value % memory.size();
    const std::uint64_t seen = limit < at.position ? 0 : limit - at.position;
    if (seen >= memory.size() - offset) return;
    const auto hidden = memory.subspan(offset + seen);
    for (std::byte& byte : hidden) byte = ~byte;
    LOCKSTEP_CHECK_OP(next_entry(ring, at, limit).has_value(), ==, found);
    for (std::byte& byte : hidden) byte = ~byte;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    Input input{std::as_bytes(std::span(bytes, count))};
    const auto options = input.take<std::uint8_t>();
    const bool put_right_checksum = (options & 1) != 0;
    Memory memory(Ring::kMinBytes << (options >> 1 & 3));
    const auto genesis = input.take<std::uint64_t>();
    Point at;
    at.index.value = input.take<std::uint64_t>();
    at.position.value = input.take<std::uint64_t>() / kEntryAlignment * kEntryAlignment;
    at.checksum = input.take<std::uint64_t>();
    at.ballot.value = input.take<std::uint64_t>();
    at.timestamp_ns = input.take<std::uint64_t>();
    const Position limit = at.position + input.take<std::uint16_t>();
    if (!input.bytes.empty())
        std::ranges::copy(input.bytes.first(std::min(input.bytes.size(), memory.bytes.size())), memory.bytes.begin());

    const Ring ring(memory.bytes, genesis);
    const NaiveReader naive(memory.bytes, genesis);
    for (int entries = 0; entries < kMaxEntries; ++entries) {
        if (put_right_checksum) {
            const std::uint64_t right = naive.right_checksum(at);
            std::memcpy(ring.at(at.position), &right, sizeof right);
        }
        const auto found = next_entry(ring, at, limit);
        expect_same(found, naive.next(at, limit.value));
        expect_blind_past(ring, memory.bytes, at, limit, found.has_value());
        if (!found) break;
        LOCKSTEP_CHECK(step_over_verified(ring, at) == found->end);
        at = found->end;
    }
    return 0;
}
