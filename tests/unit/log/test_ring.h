// A ring that owns its memory, for tests; and a chain of entries in it whose every point is known.
#pragma once

#include "log/ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace lockstep::log {


class TestRing {
 public:
    explicit TestRing(std::uint64_t bytes, std::uint64_t genesis = 0)
        : lines_(bytes / kEntryAlignment), ring_(memory(), genesis) {}
    TestRing(const TestRing&) = delete;
    TestRing& operator=(const TestRing&) = delete;

    operator const Ring&() const { return ring_; }  // NOLINT: stands in for the ring everywhere
    const Ring& ring() const { return ring_; }
    std::span<std::byte> memory() { return {lines_.front().data(), lines_.size() * kEntryAlignment}; }
    std::vector<std::byte> copy() { return {memory().begin(), memory().end()}; }
    void restore(std::span<const std::byte> bytes) { std::ranges::copy(bytes, memory().begin()); }

 private:
    struct alignas(kEntryAlignment) Line : std::array<std::byte, kEntryAlignment> {};
    std::vector<Line> lines_;
    Ring ring_;
};

// An entry as it was appended.
struct Appended {
    Point before;
    Point end;
    bool pad = false;
    // Bytes from its start that the chain vouches for: all of it, or a pad's header.
    std::uint64_t covered_bytes() const { return pad ? sizeof(EntryHeader) : end.position - before.position; }
};

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, std::uint64_t count) {
    std::vector<std::byte> bytes(count);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
    return bytes;
}

// Appends to a ring and keeps what it appended.
class Chain {
 public:
    Chain(TestRing& ring, std::uint64_t genesis)
        : ring_(ring), tail_{.index = {}, .position = {}, .checksum = genesis, .ballot = {}} {}
    Chain(TestRing& ring, const Point& tail) : ring_(ring), tail_(tail) {}

    const Point& tail() const { return tail_; }
    const std::vector<Appended>& entries() const { return entries_; }
    void forget() { entries_.clear(); }

    void append(EntryKind kind, const Stamp& stamp, BytesView payload) {
        const Point before = tail_;
        const Position start = log::append(ring_, tail_, kind, stamp, payload);
        Point middle = before;
        if (start != before.position) {
            middle = step_over_verified(ring_, before);
            entries_.push_back({before, middle, true});
        }
        entries_.push_back({middle, tail_, false});
    }
    void append(std::uint64_t payload_bytes, std::mt19937_64& random) {
        const EntryKind kinds[] = {EntryKind::command, EntryKind::no_op, EntryKind::config, EntryKind::session};
        const Stamp stamp{Ballot{tail_.ballot.value + random() % 3}, Index{random() % (tail_.index.value + 1)},
                          tail_.timestamp_ns + random() % 1000};
        append(kinds[random() % 4], stamp, random_bytes(random, payload_bytes));
    }

 private:
    TestRing& ring_;
    Point tail_;
    std::vector<Appended> entries_;
};

// The entries that a reader finds from `from` on, looking no further than `limit`.
inline std::vector<VerifiedEntry> read_all(const Ring& ring, Point from, Position limit = kNoLimit) {
    std::vector<VerifiedEntry> found;
    while (const auto entry = next_entry(ring, from, limit)) {
        found.push_back(*entry);
        from = entry->end;
    }
    return found;
}

}  // namespace lockstep::log
