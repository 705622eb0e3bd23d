// The reader once more, written from docs/log-format.md a byte at a time: what tests compare the real one with. Takes
// nothing of log/*.cc, and its XXH3 from the shared library.
#pragma once

#include "log/entry.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::log {

struct NaiveEntry {
    std::uint64_t checksum = 0, index = 0, ballot = 0, commit = 0, timestamp_ns = 0, length = 0, kind = 0, flags = 0,
                  reserved = 0;
    std::uint64_t end = 0;  // position
};

class NaiveReader {
 public:
    NaiveReader(std::span<const std::byte> ring, std::uint64_t genesis) : ring_(ring), genesis_(genesis) {}

    std::optional<NaiveEntry> next(const Point& after, std::uint64_t limit) const {
        const std::uint64_t start = after.position.value;
        if (start > limit || limit - start < 48) return std::nullopt;
        const NaiveEntry e = header(start);
        if (e.index - 1 != after.index.value || e.ballot < after.ballot.value || e.timestamp_ns < after.timestamp_ns ||
            e.commit > after.index.value || e.kind < 1 || e.kind > 5 || e.flags != 0 || e.reserved != 0)
            return std::nullopt;
        const bool pad = e.kind == 4;
        const std::uint64_t to_lap_end = ring_.size() - start % ring_.size();
        std::uint64_t size = 48 + e.length;
        while (!pad && size % 64 != 0) ++size;
        if (pad ? size != to_lap_end : size > to_lap_end || size > ring_.size() / 4 || size > limit - start)
            return std::nullopt;
        for (std::uint64_t at = 48 + e.length; !pad && at < size; ++at)
            if (byte(start + at) != std::byte{0}) return std::nullopt;
        if (right_checksum(after) != e.checksum) return std::nullopt;
        NaiveEntry found = e;
        found.end = start + size;
        return found;
    }

    // The checksum that would make the bytes at `after` its successor, their length cut to what the ring has.
    std::uint64_t right_checksum(const Point& after) const {
        const std::uint64_t start = after.position.value;
        const NaiveEntry e = header(start);
        const std::uint64_t length = e.kind == 4 ? 0 : std::min<std::uint64_t>(e.length, ring_.size());
        std::vector<std::byte> payload;
        for (std::uint64_t at = 48; at < 48 + length; ++at) payload.push_back(byte(start + at));
        std::vector<std::byte> chained;
        for (std::uint64_t at = 8; at < 48; ++at) chained.push_back(byte(start + at));
        const std::uint64_t hash = XXH3_64bits_withSeed(payload.data(), payload.size(), genesis_);
        for (int shift = 0; shift < 64; shift += 8) chained.push_back(static_cast<std::byte>(hash >> shift));
        return XXH3_64bits_withSeed(chained.data(), chained.size(), after.checksum);
    }

 private:
    std::byte byte(std::uint64_t position) const { return ring_[position % ring_.size()]; }

    std::uint64_t number(std::uint64_t position, int bytes) const {
        std::uint64_t value = 0;
        for (int at = bytes - 1; at >= 0; --at)
            value = value << 8 | std::to_integer<std::uint64_t>(byte(position + static_cast<std::uint64_t>(at)));
        return value;
    }

    NaiveEntry header(std::uint64_t at) const {
        return {.checksum = number(at, 8),
                .index = number(at + 8, 8),
                .ballot = number(at + 16, 8),
                .commit = number(at + 24, 8),
                .timestamp_ns = number(at + 32, 8),
                .length = number(at + 40, 4),
                .kind = number(at + 44, 1),
                .flags = number(at + 45, 1),
                .reserved = number(at + 46, 2)};
    }

    std::span<const std::byte> ring_;
    std::uint64_t genesis_;
};

}  // namespace lockstep::log
