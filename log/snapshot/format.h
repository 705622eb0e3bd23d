// The bytes of a snapshot's file. docs/snapshot-format.md is the specification, with a worked example.
//
// A SnapshotHeadBlock; the state in chunks, each a ChunkBlock and its bytes, all full but the last; a SnapshotEndBlock.
// The checksums form a chain: each is seeded with the one before, and the first with the cluster's genesis, so that a
// chunk verifies only in its own place in its own file.
#pragma once

#include "log/snapshot/snapshot.h"
#include "log/wal/format.h"

#include <lockstep/result.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace lockstep::log {

inline constexpr std::uint64_t kSnapshotChunkBytes = std::uint64_t{64} << 10;  // of state, in each chunk but the last

struct SnapshotHeadBlock {
    static constexpr std::uint64_t kMagic = 0x3153'5041'4e53'4b4c;  // "LKSNAPS1": the digit is the format's version
    std::uint64_t magic;
    std::uint64_t cluster_id, genesis, ring_bytes;
    PointBlock at;
    std::uint64_t config_bytes;
    std::array<char, SnapshotMeta::kMaxConfigBytes> config;  // zeros behind config_bytes
    std::uint64_t checksum;
};

struct ChunkBlock {
    static constexpr std::uint64_t kMagic = 0x314b'4e55'4843'4b4c;  // "LKCHUNK1"
    std::uint64_t magic;
    std::uint64_t number;  // from 0
    std::uint64_t bytes;   // of state, right behind this
    std::uint64_t checksum;  // over the fields before and the hash of the bytes
};

struct SnapshotEndBlock {
    static constexpr std::uint64_t kMagic = 0x3144'4e45'5053'4b4c;  // "LKSPEND1"
    std::uint64_t magic;
    std::uint64_t chunks;
    std::uint64_t state_bytes;
    std::uint64_t checksum;
    std::uint64_t digest;  // over the whole file up to here: not chained
};

static_assert(sizeof(SnapshotHeadBlock) == 600);
static_assert(sizeof(ChunkBlock) == 32);
static_assert(sizeof(SnapshotEndBlock) == 40);
static_assert(std::has_unique_object_representations_v<SnapshotHeadBlock>, "every byte is written and hashed");
static_assert(std::has_unique_object_representations_v<SnapshotEndBlock>, "every byte is written and hashed");

// Sealed: with its checksum.
SnapshotHeadBlock block_of(const SnapshotMeta& meta);
ChunkBlock chunk_of(std::uint64_t number, BytesView bytes, std::uint64_t genesis, std::uint64_t seed);
SnapshotEndBlock end_of(std::uint64_t chunks, std::uint64_t state_bytes, std::uint64_t seed, std::uint64_t digest);

// What the head says; an error where its checksum is wrong, a field cannot be, or the format is a newer one.
Result<SnapshotMeta> snapshot_meta_of(const SnapshotHeadBlock& block);
// Whether a head that verifies is of another version of the format: then it is no rot, and the file is kept.
bool of_another_version(const SnapshotHeadBlock& block);

// -- Places ---------------------------------------------------------------------------------------------------------

constexpr std::uint64_t chunk_offset(std::uint64_t number) {
    return sizeof(SnapshotHeadBlock) + number * (sizeof(ChunkBlock) + kSnapshotChunkBytes);
}
constexpr std::uint64_t chunk_count(std::uint64_t state_bytes) {
    return (state_bytes + kSnapshotChunkBytes - 1) / kSnapshotChunkBytes;
}
constexpr std::uint64_t snapshot_bytes(std::uint64_t state_bytes) {
    return sizeof(SnapshotHeadBlock) + chunk_count(state_bytes) * sizeof(ChunkBlock) + state_bytes +
           sizeof(SnapshotEndBlock);
}
// How much state a file of that many bytes holds; nothing where no file has that many.
std::optional<std::uint64_t> state_bytes_of(std::uint64_t file_bytes);

inline const FileName kTakenName{"snap-taken.new"};        // while it is written
inline const FileName kReceivedName{"snap-received.new"};  // while it comes in

// "snap-00000000000004d2-0123456789abcdef": the index, and the digest.
FileName snapshot_file_name(const SnapshotName& name);
// Whether it is the name of a complete one.
bool names_snapshot(const FileName& name);

// For a person: "snapshot at index 1234".
std::string to_string(const SnapshotName& name);

}  // namespace lockstep::log
