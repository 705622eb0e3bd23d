// The files of a replica's snapshots: what SnapshotStore has done aside, step by step, on whatever thread asks.
#pragma once

#include "consensus/replica/locked_disk.h"
#include "consensus/replica/snapshot_store.h"
#include "log/snapshot/reader.h"

#include <lockstep/result.h>
#include <lockstep/state_machine.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::replica {

// Every call blocks for the disk. `load` comes first, alone; `open` and its source may be used by one thread while
// another makes all other calls. An error is a disk that failed in what it had promised (S13); a full disk, or one that
// refuses to create or write what nobody counts on yet, is an outcome, and what was begun is gone again.
class SnapshotFiles {
 public:
    explicit SnapshotFiles(log::Disk& disk) : disk_(disk) {}

    struct Loaded {
        std::vector<SnapshotStore::Held> held;  // the newest first
        std::vector<SnapshotStore::Damaged> damaged;
    };
    Result<Loaded> load(bool none_counts);

    // Ends early, as a failure, when `stop` is set.
    Result<SnapshotOutcome> take(const log::SnapshotMeta& meta, SnapshotView& view, const std::atomic<bool>& stop);

    SnapshotOutcome read_piece(ReplicaId peer, const log::SnapshotName& name, std::uint64_t offset,
                               std::uint64_t bytes);

    // One is received at a time: another one that is under way is dropped.
    Result<std::optional<SnapshotOutcome>> begin_to_receive(const log::SnapshotName& name);
    // The next piece; with the last one, all is verified. Nothing where none is under way (any more).
    Result<std::optional<SnapshotOutcome>> write_piece(BytesView bytes);

    Result<void> remove(const std::vector<log::FileName>& names);

    // The source ends before this does; the next one that is opened takes its place.
    Result<std::unique_ptr<SnapshotSource>> open(const log::SnapshotName& name);

 private:
    Result<void> remove_if_there(const log::FileName& name);
    Result<void> complete(log::FileHandle file, const log::FileName& name, const log::FileName& to);
    Result<void> sync_if_due(log::FileHandle file, std::uint64_t written, std::uint64_t& synced);
    Result<SnapshotOutcome> give_up_receiving(std::string why);
    Result<std::optional<SnapshotOutcome>> finish_receiving();
    Result<std::optional<SnapshotStore::Held>> verify(const log::FileInfo& file, std::string& why);
    Result<log::SnapshotReader> reader(log::FileHandle file, std::uint64_t bytes);

    LockedDisk disk_;
    std::optional<log::SnapshotName> incoming_;
    std::uint64_t incoming_bytes_ = 0;   // written
    std::uint64_t incoming_synced_ = 0;
    std::uint64_t sources_ = 0;  // opened

    friend class TakingSink;
};

}  // namespace lockstep::replica
