#include "log/snapshot/format.h"

#include "log/hash.h"

#include <cinttypes>
#include <cstddef>
#include <cstdio>

namespace lockstep::log {

namespace {

// Far more than a disk holds, and far enough from where numbers wrap.
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
constexpr std::uint64_t kVersionMask = std::uint64_t{0xff} << 56;  // the magic's last character

std::uint64_t checksum_of(const SnapshotHeadBlock& block) {
    return XXH3_64bits_withSeed(&block, offsetof(SnapshotHeadBlock, checksum), block.genesis);
}

Error bad_head(const char* why) { return Error(std::string("its head is not what was written: ") + why); }

bool zeros_behind(const SnapshotHeadBlock& block) {
    for (std::uint64_t at = block.config_bytes; at < block.config.size(); ++at)
        if (block.config[at] != 0) return false;
    return true;
}

}  // namespace

SnapshotHeadBlock block_of(const SnapshotMeta& meta) {
    LOCKSTEP_CHECK_OP(meta.config.size(), <=, SnapshotMeta::kMaxConfigBytes);
    SnapshotHeadBlock block{.magic = SnapshotHeadBlock::kMagic,
                            .cluster_id = meta.cluster_id,
                            .genesis = meta.genesis,
                            .ring_bytes = meta.ring_bytes,
                            .at = {meta.at.index.value, meta.at.position.value, meta.at.checksum, meta.at.ballot.value,
                                   meta.at.timestamp_ns},
                            .config_bytes = meta.config.size(),
                            .config = {},
                            .checksum = 0};
    meta.config.copy(block.config.data(), block.config.size());
    block.checksum = checksum_of(block);
    return block;
}

ChunkBlock chunk_of(std::uint64_t number, BytesView bytes, std::uint64_t genesis, std::uint64_t seed) {
    ChunkBlock block{.magic = ChunkBlock::kMagic, .number = number, .bytes = bytes.size(), .checksum = 0};
    const std::uint64_t chained[] = {block.magic, block.number, block.bytes, hash_payload(bytes, genesis)};
    block.checksum = XXH3_64bits_withSeed(chained, sizeof chained, seed);
    return block;
}

SnapshotEndBlock end_of(std::uint64_t chunks, std::uint64_t state_bytes, std::uint64_t seed, std::uint64_t digest) {
    SnapshotEndBlock block{.magic = SnapshotEndBlock::kMagic,
                           .chunks = chunks,
                           .state_bytes = state_bytes,
                           .checksum = 0,
                           .digest = digest};
    block.checksum = XXH3_64bits_withSeed(&block, offsetof(SnapshotEndBlock, checksum), seed);
    return block;
}

bool of_another_version(const SnapshotHeadBlock& block) {
    return block.checksum == checksum_of(block) && block.magic != SnapshotHeadBlock::kMagic &&
           ((block.magic ^ SnapshotHeadBlock::kMagic) & ~kVersionMask) == 0;
}

Result<SnapshotMeta> snapshot_meta_of(const SnapshotHeadBlock& block) {
    if (of_another_version(block))
        return Error("its format is version " + std::string(1, static_cast<char>(block.magic >> 56)) +
                     ", and this program reads version 1; run the version of the program that wrote it");
    if (block.magic != SnapshotHeadBlock::kMagic) return bad_head("it does not begin with LKSNAPS1");
    if (block.checksum != checksum_of(block)) return bad_head("its checksum is wrong");
    if (block.config_bytes > block.config.size() || !zeros_behind(block)) return bad_head("its config cannot be");
    const PointBlock& at = block.at;
    if (at.position % kEntryAlignment != 0 || at.position > kMost || at.index > kMost)
        return bad_head("its point cannot be");
    return SnapshotMeta{.cluster_id = block.cluster_id,
                        .genesis = block.genesis,
                        .ring_bytes = block.ring_bytes,
                        .at = {Index{at.index}, Position{at.position}, at.checksum, Ballot{at.ballot}, at.timestamp_ns},
                        .config = std::string(block.config.data(), block.config_bytes)};
}

std::optional<std::uint64_t> state_bytes_of(std::uint64_t file_bytes) {
    constexpr std::uint64_t kFrame = snapshot_bytes(0);
    constexpr std::uint64_t kFullChunk = sizeof(ChunkBlock) + kSnapshotChunkBytes;
    if (file_bytes < kFrame || file_bytes > kMost) return std::nullopt;
    const std::uint64_t in_chunks = file_bytes - kFrame;
    const std::uint64_t last = in_chunks % kFullChunk;
    if (last != 0 && last <= sizeof(ChunkBlock)) return std::nullopt;
    return in_chunks / kFullChunk * kSnapshotChunkBytes + (last == 0 ? 0 : last - sizeof(ChunkBlock));
}

FileName snapshot_file_name(const SnapshotName& name) {
    char text[FileName::kMaxBytes + 1];
    std::snprintf(text, sizeof text, "snap-%016" PRIx64 "-%016" PRIx64, name.at.index.value, name.digest);
    return FileName(text);
}

bool names_snapshot(const FileName& name) {
    SnapshotName parsed;
    if (std::sscanf(name.c_str(), "snap-%16" SCNx64 "-%16" SCNx64, &parsed.at.index.value, &parsed.digest) != 2)
        return false;
    // Only the one way in which it is written.
    return snapshot_file_name(parsed) == name;
}

std::string to_string(const SnapshotName& name) { return "snapshot at index " + std::to_string(name.at.index.value); }

}  // namespace lockstep::log
