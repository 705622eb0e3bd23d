// Reads a snapshot's file, and verifies all of it while it does.
#pragma once

#include "log/snapshot/digest.h"
#include "log/snapshot/format.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::log {

// No byte of state is handed out before its chunk has verified, and the last chunk's not before the end and the digest
// have. Holds one chunk in memory. Errors say which chunk, where it is, and what is the matter; after one: no more
// calls. Any bytes as a file are safe to read.
class SnapshotReader {
 public:
    // Fills `into` from that offset of the file on; fewer bytes only at its end.
    using ReadAt = std::function<Result<std::uint64_t>(std::uint64_t offset, std::span<std::byte> into)>;

    // Of a file of `file_bytes`. Blocks, as `read` does.
    static Result<SnapshotReader> open(ReadAt read_at, std::uint64_t file_bytes);

    const SnapshotMeta& meta() const { return meta_; }
    // As the file says; true when the whole is read.
    SnapshotName name() const { return {meta_.at, file_bytes_, end_.digest}; }
    std::uint64_t state_bytes() const { return state_bytes_; }

    // Fills `into`; fewer bytes than that only at the end, where it is 0 at last.
    Result<std::size_t> read(std::span<std::byte> into);
    // Reads what is left, for nothing but its verification.
    Result<void> verify();

 private:
    SnapshotReader(ReadAt read_at, std::uint64_t file_bytes) : read_at_(std::move(read_at)), file_bytes_(file_bytes) {}
    Result<void> read_ends();
    Result<void> read_exactly(std::uint64_t offset, std::span<std::byte> into);
    Result<void> next_chunk();
    Result<void> check_end();

    ReadAt read_at_;
    std::uint64_t file_bytes_;
    std::uint64_t state_bytes_ = 0;
    SnapshotMeta meta_;
    SnapshotEndBlock end_{};
    Digest digest_;
    std::uint64_t seed_ = 0;
    std::uint64_t chunks_ = 0;      // read and verified
    std::vector<std::byte> chunk_;  // the newest, with its block
    std::size_t handed_out_ = 0;    // of chunk_
};

}  // namespace lockstep::log
