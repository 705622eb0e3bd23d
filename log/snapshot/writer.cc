#include "log/snapshot/writer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace lockstep::log {

Result<void> SnapshotWriter::append(BytesView bytes) {
    if (auto written = disk_.perform(DiskOperation::write(file_, offset_, bytes)); !written) return written;
    digest_.add(bytes);
    offset_ += bytes.size();
    return {};
}

Result<void> SnapshotWriter::begin(const FileName& name, const SnapshotMeta& meta) {
    LOCKSTEP_CHECK_OP(offset_, ==, 0u);
    meta_ = meta;
    chunk_.reserve(sizeof(ChunkBlock) + kSnapshotChunkBytes);
    chunk_.resize(sizeof(ChunkBlock));
    // How large it will be is not known: nothing is allocated ahead.
    if (auto created = disk_.perform(DiskOperation::create(file_, name, 0)); !created) return created;
    const SnapshotHeadBlock head = block_of(meta);
    seed_ = head.checksum;
    return append(std::as_bytes(std::span(&head, 1)));
}

Result<void> SnapshotWriter::write(BytesView state) {
    while (!state.empty()) {
        const std::size_t room = sizeof(ChunkBlock) + kSnapshotChunkBytes - chunk_.size();
        const BytesView part = state.first(std::min(room, state.size()));
        chunk_.insert(chunk_.end(), part.begin(), part.end());
        state = state.subspan(part.size());
        if (part.size() < room) break;
        if (auto flushed = flush_chunk(); !flushed) return flushed;
    }
    return {};
}

Result<void> SnapshotWriter::flush_chunk() {
    const BytesView bytes = BytesView(chunk_).subspan(sizeof(ChunkBlock));
    const ChunkBlock block = chunk_of(chunks_, bytes, meta_.genesis, seed_);
    std::memcpy(chunk_.data(), &block, sizeof block);
    if (auto written = append(chunk_); !written) return written;
    seed_ = block.checksum;
    ++chunks_;
    state_bytes_ += bytes.size();
    chunk_.resize(sizeof(ChunkBlock));
    return {};
}

Result<SnapshotName> SnapshotWriter::finish() {
    if (chunk_.size() > sizeof(ChunkBlock))
        if (auto flushed = flush_chunk(); !flushed) return std::move(flushed).error();
    SnapshotEndBlock end = end_of(chunks_, state_bytes_, seed_, 0);
    digest_.add(std::as_bytes(std::span(&end, 1)).first(offsetof(SnapshotEndBlock, digest)));
    end.digest = digest_.value();
    if (auto written = disk_.perform(DiskOperation::write(file_, offset_, std::as_bytes(std::span(&end, 1)))); !written)
        return std::move(written).error();
    offset_ += sizeof end;
    return SnapshotName{.at = meta_.at, .bytes = offset_, .digest = end.digest};
}

}  // namespace lockstep::log
