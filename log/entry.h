// The entry: the unit of the log, with the same bytes in memory, on disk and on the wire. docs/log-format.md is the
// specification, with a worked example.
//
// An entry starts at a 64-byte aligned position: a 48-byte header, the payload right behind it, zeros up to the next
// boundary. Its checksum is seeded with the checksum of the entry before it, so that it is valid only as that one's
// successor: stale bytes of an older lap, a torn write, a splice of two leaders' logs and bytes forged in a payload
// all fail the same check, and an equal checksum at an index means an equal log up to it.
#pragma once

#include <lockstep/types.h>

#include <bit>
#include <cstdint>

namespace lockstep::log {

static_assert(std::endian::native == std::endian::little, "the log's integers are little endian, and used in place");

inline constexpr std::uint64_t kEntryAlignment = 64;

enum class EntryKind : std::uint8_t {
    command = 1,  // a user's command
    no_op = 2,    // a leader's first entry (S6)
    config = 3,   // who votes
    pad = 4,      // fills the ring to its end; `length` counts bytes that are neither hashed, sent nor compared
    session = 5,  // exactly-once bookkeeping
};

struct EntryHeader {
    std::uint64_t checksum;      // see entry_checksum
    std::uint64_t index;
    std::uint64_t ballot;        // of the leader that made it
    std::uint64_t commit;        // the leader's commit index when it made it: true of the chain that the entry is in
    std::uint64_t timestamp_ns;  // leader's clock, never going back along the log
    std::uint32_t length;        // of the payload, in bytes
    EntryKind kind;
    std::uint8_t flags;          // 0
    std::uint16_t reserved;      // 0
};
static_assert(sizeof(EntryHeader) == 48, "the format fixes the header at 48 bytes");
static_assert(alignof(EntryHeader) == 8);
static_assert(sizeof(EntryHeader) <= kEntryAlignment, "a header never crosses the ring's end");

// Bytes of the stream that an entry with this payload takes.
constexpr std::uint64_t entry_bytes(std::uint64_t payload_bytes) {
    return (sizeof(EntryHeader) + payload_bytes + kEntryAlignment - 1) & ~(kEntryAlignment - 1);
}

// XXH3-64 of a payload: made where the bytes arrive, apart from the chain. Seeded with the cluster's genesis, which
// clients do not know: XXH3 without a secret seed lets anyone choose payloads of equal hash, and a torn write of one
// over another would verify.
std::uint64_t payload_hash(BytesView payload, std::uint64_t genesis);

// XXH3-64, seeded with the checksum of the entry before, over the header (without its checksum) and the payload's hash.
std::uint64_t entry_checksum(const EntryHeader& header, std::uint64_t hash_of_payload, std::uint64_t seed);

// A place between two entries: what comes next depends on no more than this. The start of a log is the point
// {0, 0, genesis, 0, 0}: the genesis value seeds the first entry.
struct Point {
    Index index;                 // of the entry before this point
    Position position;           // where the next entry starts
    std::uint64_t checksum = 0;  // of the entry before: seeds the next
    Ballot ballot;               // of the entry before
    std::uint64_t timestamp_ns = 0;  // of the entry before

    friend bool operator==(const Point&, const Point&) = default;
};

}  // namespace lockstep::log
