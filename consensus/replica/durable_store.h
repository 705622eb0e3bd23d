// What a replica that keeps its log on disk has there: its formation, its hard state, its log; and how it comes back
// with them.
#pragma once

#include "consensus/replica/disk_thread.h"
#include "consensus/replica/formation_file.h"
#include "consensus/replica/mapped_memory.h"
#include "consensus/replica/replay.h"
#include "consensus/replica/snapshot_folder.h"
#include "consensus/replica/wal_reader.h"
#include "consensus/replica/wal_storage.h"
#include "log/disk/folder_lock.h"
#include "log/disk/posix_disk.h"
#include "transport/fabric.h"

#include <lockstep/options.h>
#include <lockstep/state_machine.h>

#include <memory>
#include <optional>

namespace lockstep::replica {

class DurableStore final : public FormationStore {
 public:
    // In durable mode it reads back what there is, and applies to `state_machine` what is committed: blocks for as long
    // as that takes, and logs how far it is. Errors: see FormationFile::open and replay; the formation and the log do
    // not belong together.
    static Result<std::unique_ptr<DurableStore>> open(const Options& options, StateMachine& state_machine,
                                                      Incarnation fresh);
    ~DurableStore() override { stop(); }  // before what the disk reads is gone
    const std::optional<KeptFormation>& formed() const { return formation_.kept(); }
    // Of this disk; the fresh one where nothing has been formed yet.
    Incarnation incarnation() const { return incarnation_; }
    // None for a replica that is yet to form.
    const core::Recovered* recovered() const { return found_ ? &found_->core : nullptr; }
    // Fills the fabric's ring with the end of the log, and begins to work. Once.
    void attach(transport::Fabric& fabric);
    Storage& storage() { return *storage_; }
    LogSource& wal() { return *reader_; }
    SnapshotFolder& snapshots() { return *snapshots_; }
    // Blocks until the disk has done what it is at. Nothing is kept afterwards.
    void stop();

    // Protocol thread; blocks for the disk.
    Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) override;

 private:
    DurableStore(const Options& options, FormationFile formation, log::FolderLock lock,
                 std::unique_ptr<log::PosixDisk> disk, std::unique_ptr<log::PosixDisk> reading, MappedMemory copy,
                 std::unique_ptr<SnapshotFolder> snapshots, Incarnation fresh);

    const log::Identity identity_;
    FormationFile formation_;
    log::FolderLock lock_;
    std::unique_ptr<log::PosixDisk> disk_;
    std::unique_ptr<log::PosixDisk> reading_;  // the same folder, for the thread that reads for others
    MappedMemory copy_;
    Incarnation incarnation_;
    std::optional<Replayed> found_;
    std::unique_ptr<DiskThread> thread_;
    std::unique_ptr<WalStorage> storage_;
    std::unique_ptr<WalReader> reader_;
    std::unique_ptr<SnapshotFolder> snapshots_;
};

}  // namespace lockstep::replica
