#include "log/ring.h"

#include "log/check.h"
#include "log/hash.h"
#include "log/planted.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace lockstep::log {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kWord = sizeof(std::uint64_t);

constexpr std::uint64_t align_up(std::uint64_t bytes) {
    return (bytes + kEntryAlignment - 1) & ~(kEntryAlignment - 1);
}

std::uint64_t word_at(const std::byte* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

// Whether the last `count` bytes of an entry that ends at `end` are zero, a word at a time. The last, partial word
// reaches back into bytes that are the entry's own: its header is longer than a word.
bool gap_is_zero(const std::byte* end, std::uint64_t count) {
    for (; count >= kWord; count -= kWord) {
        end -= kWord;
        if (word_at(end) != 0) return false;
    }
    return count == 0 || word_at(end - kWord) >> (8 * (kWord - count)) == 0;
}

bool known_kind(EntryKind kind) { return kind >= EntryKind::command && kind <= EntryKind::session; }

// Whether a header that was read could follow `after`, by all that can be told without its size or a hash.
bool plausible(const EntryHeader& header, const Point& after) {
    if (header.index != after.index.value + 1) return false;
    // With the chain's seed goes what else would tell the splice of two logs.
    if (header.ballot < after.ballot.value && !LOCKSTEP_PLANTED(chain_seed_ignored)) return false;
    if (header.timestamp_ns < after.timestamp_ns) return false;
    if (header.commit > after.index.value) return false;
    if (!known_kind(header.kind)) return false;
    return header.flags == 0 && header.reserved == 0;
}

EntryHeader header_after(const Point& tail, EntryKind kind, const Stamp& stamp, std::uint64_t length) {
    return EntryHeader{.checksum = 0,
                       .index = tail.index.value + 1,
                       .ballot = stamp.ballot.value,
                       .commit = stamp.commit.value,
                       .timestamp_ns = stamp.timestamp_ns,
                       .length = static_cast<std::uint32_t>(length),
                       .kind = kind,
                       .flags = 0,
                       .reserved = 0};
}

// Chains `header` to `tail`, puts it into the ring there, and moves `tail` over the entry.
inline void write_header(const Ring& ring, Point& tail, EntryHeader header, std::uint64_t hash, std::uint64_t size) {
    header.checksum = chain_checksum(header, hash, tail.checksum);
    new (ring.at(tail.position)) EntryHeader(header);
    tail = point_behind(header, tail.position, size);
}

// Once a lap: out of the way of the rest.
[[gnu::noinline]] void append_pad(const Ring& ring, Point& tail, const Stamp& stamp, std::uint64_t room) {
    const EntryHeader header = header_after(tail, EntryKind::pad, stamp, room - sizeof(EntryHeader));
    write_header(ring, tail, header, hash_payload({}, ring.genesis()), room);
}

}  // namespace

Geometry Geometry::of(std::uint64_t ring_bytes) {
    const std::uint64_t sixteenth = ring_bytes / 16;
    // Tests with tiny rings get a reserve in proportion; four no-ops are the least that makes sense.
    if (LOCKSTEP_PLANTED(no_reserve)) return Geometry{ring_bytes, 0, align_up(ring_bytes / 4), ring_bytes / 4};
    const std::uint64_t least = ring_bytes >= kMiB ? 64 * 1024 : 4 * kEntryAlignment;
    return Geometry{.ring_bytes = ring_bytes,
                    .reserve_bytes = align_up(std::max(sixteenth, least)),
                    .kept_tail_bytes = align_up(ring_bytes / 4),
                    .max_entry_bytes = ring_bytes / 4};
}

Ring::Ring(std::span<std::byte> memory, std::uint64_t genesis)
    : memory_(memory.data()),
      mask_(memory.size() - 1),
      genesis_(genesis),
      geometry_(Geometry::of(memory.size())) {
    LOCKSTEP_CHECK_OP(memory.size(), >=, kMinBytes);
    LOCKSTEP_CHECK_OP(memory.size(), <=, kMaxBytes);
    LOCKSTEP_CHECK_OP(memory.size() & mask_, ==, 0);
    LOCKSTEP_CHECK_OP(reinterpret_cast<std::uintptr_t>(memory.data()) % kEntryAlignment, ==, 0);
}

std::optional<VerifiedEntry> next_entry(const Ring& ring, const Point& after, Position limit) {
    LOCKSTEP_CHECK_OP(after.position.value % kEntryAlignment, ==, 0);
    if (after.position >= limit || limit - after.position < sizeof(EntryHeader)) return std::nullopt;
    const std::byte* const start = ring.at(after.position);
    EntryHeader header;
    std::memcpy(&header, start, sizeof header);
    // A peer may be writing: what was copied is what gets checked and used, it is not to be loaded a second time.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!plausible(header, after)) return std::nullopt;

    const std::uint64_t room = ring.bytes_to_lap_end(after.position);
    BytesView payload;
    std::uint64_t size = room;
    if (header.kind == EntryKind::pad) {
        if (sizeof(EntryHeader) + std::uint64_t{header.length} != room) return std::nullopt;
    } else {
        size = entry_bytes(header.length);
        if (size > room || size > ring.geometry().max_entry_bytes) return std::nullopt;
        if (size > limit - after.position) return std::nullopt;
        payload = BytesView(start + sizeof(EntryHeader), header.length);
        if (!gap_is_zero(start + size, size - sizeof(EntryHeader) - header.length)) return std::nullopt;
    }
    const std::uint64_t hash = hash_payload(payload, ring.genesis());
    if (header.checksum != chain_checksum(header, hash, after.checksum)) return std::nullopt;
    return VerifiedEntry{.header = header,
                         .end = point_behind(header, after.position, size),
                         .payload = payload,
                         .start = after.position};
}

Position append(const Ring& ring, Point& tail, EntryKind kind, const Stamp& stamp, BytesView payload) {
    const std::uint64_t size = entry_bytes(payload.size());
    // What a reader would refuse is never written.
    LOCKSTEP_CHECK_OP(tail.position.value % kEntryAlignment, ==, 0);
    LOCKSTEP_CHECK_OP(size, <=, ring.geometry().max_entry_bytes);
    LOCKSTEP_CHECK_OP(stamp.ballot.value, >=, tail.ballot.value);
    LOCKSTEP_CHECK_OP(stamp.timestamp_ns, >=, tail.timestamp_ns);
    LOCKSTEP_CHECK_OP(stamp.commit.value, <=, tail.index.value);
    LOCKSTEP_CHECK(kind != EntryKind::pad);
    const std::uint64_t room = ring.bytes_to_lap_end(tail.position);
    if (size > room) [[unlikely]]
        append_pad(ring, tail, stamp, room);

    const Position start = tail.position;
    std::byte* const to = ring.at(start);
    // The gap lies in the last line; what else is in that line is overwritten next.
    std::memset(to + size - kEntryAlignment, 0, kEntryAlignment);
    if (!payload.empty()) std::memcpy(to + sizeof(EntryHeader), payload.data(), payload.size());
    write_header(ring, tail, header_after(tail, kind, stamp, payload.size()), hash_payload(payload, ring.genesis()),
                 size);
    return start;
}

}  // namespace lockstep::log
