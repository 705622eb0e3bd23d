// The ring: a replica's window of the log stream, in memory that others may write.
#pragma once

#include "log/check.h"
#include "log/entry.h"

#include <lockstep/types.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace lockstep::log {

// How a ring of a given size is divided. Every replica of a cluster has the same.
struct Geometry {
    std::uint64_t ring_bytes = 0;
    // Kept free of commands, for no-ops and config entries: a full ring can still elect.
    std::uint64_t reserve_bytes = 0;
    // Of applied bytes that are kept for others to read and to repair from, before they may be overwritten.
    std::uint64_t kept_tail_bytes = 0;
    // The largest entry, header included.
    std::uint64_t max_entry_bytes = 0;

    // `ring_bytes` is a power of two, 1 KiB at least; under 1 MiB it is for tests only.
    static Geometry of(std::uint64_t ring_bytes);
};

// A view of a ring's memory; does not own it. Its bytes can be changed by a peer at any time while a lane is open:
// what is read from it is believed only after its checksum, taken over the very bytes that are used afterwards or over
// bytes that S11 keeps from being overwritten.
class Ring {
 public:
    static constexpr std::uint64_t kMinBytes = 1024;
    static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;  // the length of a pad, too, has 32 bits

    // `memory` is a power of two long, within those bounds, and aligned to kEntryAlignment.
    explicit Ring(std::span<std::byte> memory, std::uint64_t genesis = 0);
    // Keys the hashes of payloads, as soon as the genesis is known and before the first entry.
    void set_genesis(std::uint64_t genesis) { genesis_ = genesis; }

    std::uint64_t bytes() const { return geometry_.ring_bytes; }
    const Geometry& geometry() const { return geometry_; }
    std::uint64_t genesis() const { return genesis_; }
    std::byte* at(Position position) const { return memory_ + (position.value & mask_); }
    // From `position` to the end of its lap.
    std::uint64_t bytes_to_lap_end(Position position) const { return bytes() - (position.value & mask_); }
    Position lap_start(Position position) const { return {position.value & ~mask_}; }

 private:
    std::byte* memory_;
    std::uint64_t mask_;
    std::uint64_t genesis_;
    Geometry geometry_;
};

// An entry that verified.
struct VerifiedEntry {
    EntryHeader header;  // a copy, made before it was checked
    Point end;           // the point behind it
    BytesView payload;   // in the ring; empty for a pad
    Position start;
};

// For a reader that is held back by nothing but its checks.
inline constexpr Position kNoLimit{~std::uint64_t{0}};

// The entry that follows `after`, if all of it is there: chained to `after`, in bounds, its ballot not lower, its
// time not earlier, its padding zero. Nothing else is ever an entry; anything else is "not there yet".
// Never looks at `limit` or past it.
std::optional<VerifiedEntry> next_entry(const Ring& ring, const Point& after, Position limit);

// The point behind an entry of `size` bytes.
inline Point point_behind(const EntryHeader& header, Position start, std::uint64_t size) {
    return Point{Index{header.index}, start + size, header.checksum, Ballot{header.ballot}, header.timestamp_ns};
}

// The point behind the entry that starts at `at.position`, from its header alone. Only for bytes that were verified
// before and that S11 protects since. Inline: a replica steps over every entry that it commits and applies.
// Leaves the header in `header`.
inline Point step_over_verified(const Ring& ring, const Point& at, EntryHeader& header) {
    LOCKSTEP_CHECK_OP(at.position.value % kEntryAlignment, ==, 0);
    std::memcpy(&header, ring.at(at.position), sizeof header);
    LOCKSTEP_CHECK_OP(header.index, ==, at.index.value + 1);
    const std::uint64_t bytes = sizeof(EntryHeader) + std::uint64_t{header.length};
    const std::uint64_t size = header.kind == EntryKind::pad ? bytes : entry_bytes(header.length);
    LOCKSTEP_CHECK_OP(size, <=, ring.bytes_to_lap_end(at.position));
    return point_behind(header, at.position, size);
}
inline Point step_over_verified(const Ring& ring, const Point& at) {
    EntryHeader header;
    return step_over_verified(ring, at, header);
}

// Whether the entry that starts there is a pad. Only for bytes as above.
inline bool is_pad(const Ring& ring, Position start) {
    EntryKind kind;
    std::memcpy(&kind, ring.at(start) + offsetof(EntryHeader, kind), sizeof kind);
    return kind == EntryKind::pad;
}

// What a leader adds to an entry.
struct Stamp {
    Ballot ballot;
    Index commit;
    std::uint64_t timestamp_ns = 0;
};

// Bytes of the stream that appending this payload at `at` takes, the pad before it included.
inline std::uint64_t bytes_to_append(const Ring& ring, Position at, std::uint64_t payload_bytes) {
    const std::uint64_t size = entry_bytes(payload_bytes);
    const std::uint64_t room = ring.bytes_to_lap_end(at);
    return size <= room ? size : room + size;
}

// Writes an entry behind `tail` and moves `tail` over it; first a pad, if it would cross the ring's end. The caller
// has checked that these bytes of the ring are free (S11). `kind` is not pad; the ballot and the time are not below the
// tail's, the commit not above it. Returns where the entry itself starts.
Position append(const Ring& ring, Point& tail, EntryKind kind, const Stamp& stamp, BytesView payload);

}  // namespace lockstep::log
