#include "log/ring.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>

namespace lockstep::log {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr std::uint64_t align_up(std::uint64_t bytes) {
    return (bytes + kEntryAlignment - 1) & ~(kEntryAlignment - 1);
}

bool all_zero(const std::byte* from, std::uint64_t count) {
    return std::all_of(from, from + count, [](std::byte b) { return b == std::byte{0}; });
}

bool known_kind(EntryKind kind) { return kind >= EntryKind::command && kind <= EntryKind::session; }

// Whether a header that was read could follow `after`, by all that can be told without hashing.
bool plausible(const Ring& ring, const EntryHeader& header, const Point& after) {
    if (header.index != after.index.value + 1) return false;
    if (header.ballot < after.ballot.value) return false;
    if (header.timestamp_ns < after.timestamp_ns) return false;
    if (header.commit > header.index) return false;
    if (!known_kind(header.kind)) return false;
    if (header.flags != 0 || header.reserved != 0) return false;
    const std::uint64_t room = ring.bytes_to_lap_end(after.position);
    if (header.kind == EntryKind::pad) return header.length + sizeof(EntryHeader) == room;
    const std::uint64_t size = entry_bytes(header.length);
    return size <= room && size <= Geometry::of(ring.bytes()).max_entry_bytes;
}

void write_header(const Ring& ring, Point& tail, EntryHeader header, std::uint64_t hash, std::uint64_t size) {
    header.checksum = entry_checksum(header, hash, tail.checksum);
    std::memcpy(ring.at(tail.position), &header, sizeof header);
    tail = Point{Index{header.index}, tail.position + size, header.checksum, Ballot{header.ballot},
                 header.timestamp_ns};
}

EntryHeader header_after(const Point& tail, EntryKind kind, const Stamp& stamp, std::uint32_t length) {
    return EntryHeader{.checksum = 0,
                       .index = tail.index.value + 1,
                       .ballot = stamp.ballot.value,
                       .commit = stamp.commit.value,
                       .timestamp_ns = stamp.timestamp_ns,
                       .length = length,
                       .kind = kind,
                       .flags = 0,
                       .reserved = 0};
}

void append_pad(const Ring& ring, Point& tail, const Stamp& stamp) {
    const std::uint64_t room = ring.bytes_to_lap_end(tail.position);
    const auto body = static_cast<std::uint32_t>(room - sizeof(EntryHeader));
    write_header(ring, tail, header_after(tail, EntryKind::pad, stamp, body), payload_hash({}), room);
}

}  // namespace

Geometry Geometry::of(std::uint64_t ring_bytes) {
    const std::uint64_t sixteenth = ring_bytes / 16;
    // Tests with tiny rings get a reserve in proportion; four no-ops are the least that makes sense.
    const std::uint64_t least = ring_bytes >= kMiB ? 64 * 1024 : 4 * kEntryAlignment;
    return Geometry{.ring_bytes = ring_bytes,
                    .reserve_bytes = align_up(std::max(sixteenth, least)),
                    .kept_tail_bytes = align_up(ring_bytes / 4),
                    .max_entry_bytes = ring_bytes / 4};
}

Ring::Ring(std::span<std::byte> memory) : memory_(memory), mask_(memory.size() - 1) {
    LOCKSTEP_CHECK_OP(memory.size(), >=, 1024);
    LOCKSTEP_CHECK_OP(memory.size() & mask_, ==, 0);
    LOCKSTEP_CHECK_OP(reinterpret_cast<std::uintptr_t>(memory.data()) % kEntryAlignment, ==, 0);
}

std::optional<VerifiedEntry> next_entry(const Ring& ring, const Point& after, Position limit) {
    if (after.position >= limit || limit - after.position < sizeof(EntryHeader)) return std::nullopt;
    VerifiedEntry found;
    std::memcpy(&found.header, ring.at(after.position), sizeof found.header);
    const EntryHeader& header = found.header;
    if (!plausible(ring, header, after)) return std::nullopt;

    const bool pad = header.kind == EntryKind::pad;
    std::uint64_t size = sizeof(EntryHeader) + std::uint64_t{header.length};
    if (!pad) {
        size = entry_bytes(header.length);
        if (limit - after.position < size) return std::nullopt;
        const std::byte* payload = ring.at(after.position) + sizeof(EntryHeader);
        found.payload = BytesView(payload, header.length);
        if (!all_zero(payload + header.length, size - sizeof(EntryHeader) - header.length)) return std::nullopt;
    }
    if (header.checksum != entry_checksum(header, payload_hash(found.payload), after.checksum)) return std::nullopt;
    found.start = after.position;
    found.end = Point{Index{header.index}, after.position + size, header.checksum, Ballot{header.ballot},
                      header.timestamp_ns};
    return found;
}

Point step_over_verified(const Ring& ring, const Point& at) {
    EntryHeader header;
    std::memcpy(&header, ring.at(at.position), sizeof header);
    LOCKSTEP_CHECK_OP(header.index, ==, at.index.value + 1);
    const std::uint64_t size = header.kind == EntryKind::pad ? sizeof(EntryHeader) + std::uint64_t{header.length}
                                                             : entry_bytes(header.length);
    return Point{Index{header.index}, at.position + size, header.checksum, Ballot{header.ballot}, header.timestamp_ns};
}

std::uint64_t bytes_to_append(const Ring& ring, Position at, std::uint64_t payload_bytes) {
    const std::uint64_t size = entry_bytes(payload_bytes);
    const std::uint64_t room = ring.bytes_to_lap_end(at);
    return size <= room ? size : room + size;
}

Position append(const Ring& ring, Point& tail, EntryKind kind, const Stamp& stamp, BytesView payload) {
    const std::uint64_t size = entry_bytes(payload.size());
    LOCKSTEP_CHECK_OP(size, <=, Geometry::of(ring.bytes()).max_entry_bytes);
    if (size > ring.bytes_to_lap_end(tail.position)) append_pad(ring, tail, stamp);

    const Position start = tail.position;
    std::byte* to = ring.at(start) + sizeof(EntryHeader);
    if (!payload.empty()) std::memcpy(to, payload.data(), payload.size());
    std::memset(to + payload.size(), 0, size - sizeof(EntryHeader) - payload.size());
    write_header(ring, tail, header_after(tail, kind, stamp, static_cast<std::uint32_t>(payload.size())),
                 payload_hash(payload), size);
    return start;
}

}  // namespace lockstep::log
