// Writes a snapshot's file.
#pragma once

#include "log/disk/disk.h"
#include "log/snapshot/digest.h"
#include "log/snapshot/format.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <vector>

namespace lockstep::log {

// In order: begin, write any number of times, finish. Each blocks for the disk, and holds one chunk in memory. Nothing
// is synced and nothing renamed. After an error: no more calls; the file holds a part of it.
class SnapshotWriter {
 public:
    // `disk` outlives this. Creates `name` as `file`.
    SnapshotWriter(Disk& disk, FileHandle file) : disk_(disk), file_(file) {}
    SnapshotWriter(const SnapshotWriter&) = delete;
    SnapshotWriter& operator=(const SnapshotWriter&) = delete;

    Result<void> begin(const FileName& name, const SnapshotMeta& meta);
    Result<void> write(BytesView state);
    Result<SnapshotName> finish();

    std::uint64_t written() const { return offset_; }  // bytes of the file

 private:
    Result<void> append(BytesView bytes);
    Result<void> flush_chunk();

    Disk& disk_;
    const FileHandle file_;
    SnapshotMeta meta_;
    std::vector<std::byte> chunk_;  // a ChunkBlock's place, then what is not written yet
    Digest digest_;
    std::uint64_t seed_ = 0;
    std::uint64_t chunks_ = 0;
    std::uint64_t state_bytes_ = 0;
    std::uint64_t offset_ = 0;
};

}  // namespace lockstep::log
