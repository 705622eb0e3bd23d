#include "log/wal/format.h"

#include "log/hash.h"

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace lockstep::log {

namespace {

PointBlock block_of(const Point& point) {
    return {point.index.value, point.position.value, point.checksum, point.ballot.value, point.timestamp_ns};
}

Point point_of(const PointBlock& block) {
    return {Index{block.index}, Position{block.position}, block.checksum, Ballot{block.ballot}, block.timestamp_ns};
}

template <class Block>
std::uint64_t checksum_of(const Block& block) {
    return XXH3_64bits(&block, offsetof(Block, checksum));
}

template <class Block>
Block sealed(Block block) {
    block.magic = Block::kMagic;
    block.checksum = checksum_of(block);
    return block;
}

template <class Block>
bool unseal(BytesView bytes, Block& block) {
    if (bytes.size() < sizeof block) return false;
    std::memcpy(&block, bytes.data(), sizeof block);
    return block.magic == Block::kMagic && block.checksum == checksum_of(block);
}

bool sound_ring(std::uint64_t bytes) {
    return bytes >= 1024 && bytes <= std::uint64_t{1} << 32 && (bytes & (bytes - 1)) == 0;
}

// Far more than a disk holds, and far enough from where numbers wrap.
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxEra = 0xffff'fffe;  // of eight hexadecimal digits, and one more

bool sound(const Point& point) {
    return point.position.value % kEntryAlignment == 0 && point.position.value <= kMost && point.index.value <= kMost;
}

}  // namespace

HardStateBlock block_of(const HardState& state, std::uint64_t sequence) {
    return sealed(HardStateBlock{.magic = 0,
                                 .sequence = sequence,
                                 .cluster_id = state.cluster_id,
                                 .replica = state.replica.value,
                                 .genesis = state.genesis,
                                 .ring_bytes = state.ring_bytes,
                                 .incarnation = state.incarnation.value,
                                 .promised = state.promised.value,
                                 .promised_to = state.promised_to.value,
                                 .era = state.era,
                                 .base = block_of(state.base),
                                 .floor = state.floor.value,
                                 .damage = static_cast<std::uint64_t>(state.owed.damage),
                                 .owed = block_of(state.owed.end),
                                 .found_in = state.owed.found_in.value,
                                 .checksum = 0});
}

std::optional<NumberedHardState> hard_state_of(BytesView bytes) {
    HardStateBlock block;
    if (!unseal(bytes, block)) return std::nullopt;
    if (block.replica == 0 || block.replica > 255 || !sound_ring(block.ring_bytes)) return std::nullopt;
    const HardState state{.cluster_id = block.cluster_id,
                          .replica = ReplicaId{static_cast<std::uint8_t>(block.replica)},
                          .genesis = block.genesis,
                          .ring_bytes = block.ring_bytes,
                          .incarnation = Incarnation{block.incarnation},
                          .promised = Ballot{block.promised},
                          .promised_to = Incarnation{block.promised_to},
                          .era = block.era,
                          .base = point_of(block.base),
                          .floor = Position{block.floor},
                          .owed = {static_cast<Damage>(block.damage), point_of(block.owed),
                                   Ballot{block.found_in}}};
    if (block.sequence > kMost || state.era == 0 || state.era > kMaxEra || block.floor > kMost) return std::nullopt;
    if (!sound(state.base) || block.damage > static_cast<std::uint64_t>(Damage::corrupt)) return std::nullopt;
    return NumberedHardState{state, block.sequence};
}

SegmentBlock block_of(const SegmentHeader& header) {
    return sealed(SegmentBlock{.magic = 0,
                               .cluster_id = header.cluster_id,
                               .replica = header.replica.value,
                               .ring_bytes = header.ring_bytes,
                               .era = header.era,
                               .first = header.first.value,
                               .start = block_of(header.start),
                               .checksum = 0});
}

std::optional<SegmentHeader> segment_header_of(BytesView bytes) {
    SegmentBlock block;
    if (!unseal(bytes, block)) return std::nullopt;
    if (block.replica == 0 || block.replica > 255) return std::nullopt;
    const SegmentHeader header{.cluster_id = block.cluster_id,
                               .replica = ReplicaId{static_cast<std::uint8_t>(block.replica)},
                               .ring_bytes = block.ring_bytes,
                               .era = block.era,
                               .first = Position{block.first},
                               .start = point_of(block.start)};
    if (!sound(header.start)) return std::nullopt;
    return header;
}

FloorBlock block_of(const Floor& floor, std::uint64_t cluster_id, std::uint64_t era, Position first) {
    return sealed(FloorBlock{.magic = 0,
                             .cluster_id = cluster_id,
                             .era = era,
                             .first = first.value,
                             .generation = floor.generation,
                             .begin = floor.begin.value,
                             .end = block_of(floor.end),
                             .committed = floor.committed.value,
                             .checksum = 0});
}

std::optional<PlacedFloor> floor_of(BytesView bytes) {
    FloorBlock block;
    if (!unseal(bytes, block)) return std::nullopt;
    const Floor floor{.generation = block.generation,
                      .begin = Position{block.begin},
                      .end = point_of(block.end),
                      .committed = Index{block.committed}};
    if (floor.committed > floor.end.index) return std::nullopt;
    if (!sound(floor.end) || floor.generation > kMost || floor.begin > floor.end.position) return std::nullopt;
    return PlacedFloor{floor, block.cluster_id, block.era, Position{block.first}};
}

FileName segment_name(std::uint64_t era, Position first) {
    char text[FileName::kMaxBytes + 1];
    std::snprintf(text, sizeof text, "wal-%08" PRIx64 "-%016" PRIx64, era, first.value);
    return FileName(text);
}

std::optional<SegmentName> parse_segment_name(const FileName& name) {
    SegmentName parsed;
    if (std::sscanf(name.c_str(), "wal-%8" SCNx64 "-%16" SCNx64, &parsed.era, &parsed.first.value) != 2)
        return std::nullopt;
    // Only the one way in which it is written.
    if (segment_name(parsed.era, parsed.first) != name) return std::nullopt;
    return parsed;
}

}  // namespace lockstep::log
