#include "log/snapshot/reader.h"

#include "log/planted.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace lockstep::log {

Result<SnapshotReader> SnapshotReader::open(ReadAt read_at, std::uint64_t file_bytes) {
    SnapshotReader reader(std::move(read_at), file_bytes);
    if (auto read = reader.read_ends(); !read) return std::move(read).error();
    return reader;
}

Result<void> SnapshotReader::read_exactly(std::uint64_t offset, std::span<std::byte> into) {
    auto got = read_at_(offset, into);
    if (!got) return std::move(got).error();
    if (got.value() == into.size() || LOCKSTEP_PLANTED(short_chunk_accepted)) return {};
    return Error("it ends at byte " + std::to_string(offset + got.value()) + " and should have " +
                 std::to_string(file_bytes_) + " bytes: a part of it is missing");
}

Result<void> SnapshotReader::read_ends() {
    SnapshotHeadBlock head;
    if (file_bytes_ < sizeof head)
        return Error("it has " + std::to_string(file_bytes_) + " bytes, and the head alone needs " +
                     std::to_string(sizeof head) + ": a part of it is missing");
    if (auto read = read_exactly(0, std::as_writable_bytes(std::span(&head, 1))); !read) return read;
    auto meta = snapshot_meta_of(head);
    if (!meta) return std::move(meta).error();
    meta_ = std::move(meta).value();
    const auto state_bytes = state_bytes_of(file_bytes_);
    if (!state_bytes)
        return Error("it has " + std::to_string(file_bytes_) + " bytes, which no whole one has: a part of it is "
                     "missing, or there is more than was written");
    state_bytes_ = *state_bytes;
    if (auto read = read_exactly(file_bytes_ - sizeof end_, std::as_writable_bytes(std::span(&end_, 1))); !read)
        return read;
    seed_ = head.checksum;
    digest_.add(std::as_bytes(std::span(&head, 1)));
    return state_bytes_ == 0 ? check_end() : Result<void>{};
}

Result<void> SnapshotReader::next_chunk() {
    const std::uint64_t offset = chunk_offset(chunks_);
    const std::uint64_t bytes = std::min(kSnapshotChunkBytes, state_bytes_ - chunks_ * kSnapshotChunkBytes);
    chunk_.resize(sizeof(ChunkBlock) + bytes);
    if (auto read = read_exactly(offset, chunk_); !read) return read;
    const ChunkBlock expected = chunk_of(chunks_, BytesView(chunk_).subspan(sizeof(ChunkBlock)), meta_.genesis, seed_);
    if (std::memcmp(&expected, chunk_.data(), sizeof expected) != 0 && !LOCKSTEP_PLANTED(short_chunk_accepted))
        return Error("chunk " + std::to_string(chunks_) + ", at byte " + std::to_string(offset) +
                     ", is not what was written there: its checksum is wrong");
    digest_.add(chunk_);
    seed_ = expected.checksum;
    handed_out_ = sizeof(ChunkBlock);
    ++chunks_;
    return chunks_ == chunk_count(state_bytes_) ? check_end() : Result<void>{};
}

Result<void> SnapshotReader::check_end() {
    if (LOCKSTEP_PLANTED(short_chunk_accepted)) return {};
    const std::string where = "its end, at byte " + std::to_string(file_bytes_ - sizeof end_) + ", ";
    const SnapshotEndBlock expected = end_of(chunks_, state_bytes_, seed_, end_.digest);
    if (std::memcmp(&expected, &end_, sizeof expected) != 0)
        return Error(where + "is not what was written there: its checksum is wrong");
    digest_.add(std::as_bytes(std::span(&end_, 1)).first(offsetof(SnapshotEndBlock, digest)));
    if (end_.digest != digest_.value()) return Error(where + "says another digest than its bytes have");
    return {};
}

Result<std::size_t> SnapshotReader::read(std::span<std::byte> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
        if (handed_out_ == chunk_.size()) {
            if (chunks_ == chunk_count(state_bytes_)) break;
            if (auto read = next_chunk(); !read) return std::move(read).error();
        }
        const std::size_t part = std::min(into.size() - filled, chunk_.size() - handed_out_);
        std::memcpy(into.data() + filled, chunk_.data() + handed_out_, part);
        filled += part;
        handed_out_ += part;
    }
    return filled;
}

Result<void> SnapshotReader::verify() {
    while (chunks_ < chunk_count(state_bytes_))
        if (auto read = next_chunk(); !read) return read;
    handed_out_ = chunk_.size();
    return {};
}

}  // namespace lockstep::log
