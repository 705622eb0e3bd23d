// A replica's snapshots: taken, kept, handed out in pieces, received in pieces. What touches the disk is done aside.
#pragma once

#include "consensus/replica/background.h"
#include "log/disk/disk.h"
#include "log/snapshot/snapshot.h"

#include <lockstep/result.h>
#include <lockstep/state_machine.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::replica {

// What has come of it.
struct SnapshotOutcome {
    enum class Kind : std::uint8_t {
        taken,           // `name` is complete and durable, and is the newest
        take_failed,     // `why`; nothing of it is left
        piece_read,      // `bytes` of `name` from `offset` on, for `peer`; empty where it is not there any more
        piece_written,   // the snapshot under way is there up to `offset`
        received,        // `name`, with `meta`, is complete, verified and durable
        receive_failed,  // `why`, such as a full disk; nothing of it is left
    };
    Kind kind = Kind::taken;
    log::SnapshotName name;
    log::SnapshotMeta meta;
    ReplicaId peer;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
    std::string why;
};

// All calls come from one thread, the protocol's, and none blocks unless it says so. The disk is used by the
// background's thread and by those calls that block, one operation at a time. Of its file handles 3 to 6 are used.
class SnapshotStore {
 public:
    static constexpr std::uint64_t kMaxPieceBytes = std::uint64_t{48} << 10;  // fits a control message

    // `disk` and `background` outlive this. `wake` is called by the background when there is an outcome; it must not
    // call this store.
    SnapshotStore(log::Disk& disk, Background& background, std::function<void()> wake);
    // Ends what is under way, and waits for the disk operation that runs: after it, neither disk nor `wake` is used.
    ~SnapshotStore();
    SnapshotStore(const SnapshotStore&) = delete;
    SnapshotStore& operator=(const SnapshotStore&) = delete;

    // Finds the complete ones, which it reads and verifies, and removes what was only begun. Blocks; comes first. With
    // `none_counts`, all are removed: they are of a life of this replica that has ended. Errors: the disk's; a file of
    // another version of the program, which stays.
    Result<void> load(bool none_counts);
    // What `load` found that once was complete, and is not any more.
    struct Damaged {
        log::FileName file;
        std::string why;  // names the file
    };
    const std::vector<Damaged>& damaged() const { return damaged_; }
    // Once the replica has come back without them. Blocks; before anything else is asked for.
    Result<void> remove_damaged();
    // The complete ones, the newest first, with what they are of.
    struct Held {
        log::SnapshotName name;
        log::SnapshotMeta meta;
    };
    const std::vector<Held>& held() const { return held_; }

    // Writes one aside: complete or absent (written under another name, fsynced, renamed, the folder fsynced). One at a
    // time.
    void take(const log::SnapshotMeta& meta, std::unique_ptr<SnapshotView> view);
    bool taking() const { return taking_; }

    // Asks for a piece of a complete one; at most kMaxPieceBytes.
    void read_piece(ReplicaId peer, const log::SnapshotName& name, std::uint64_t offset, std::uint64_t bytes);

    // Begins to receive `name`, unless that is under way already: then it goes on where it stands. Another one that
    // was under way is dropped. Room on the disk is taken at once.
    void receive(const log::SnapshotName& name);
    // What is under way, and up to where it was handed in.
    const std::optional<log::SnapshotName>& receiving() const { return receiving_; }
    std::uint64_t received() const { return received_; }
    // The piece at `received()`: copied. When the last one is written, the whole is verified, and `received` said, or
    // `receive_failed`.
    void write_piece(BytesView bytes);

    // Removes complete ones that are older than this, aside.
    void drop_older(Index than);

    // Reads a complete one's state, verified as it is read: an error at the end at the latest, if it is not what was
    // written. Blocks until the background is idle; the source may be used until the next call of any member.
    Result<std::unique_ptr<SnapshotSource>> open(const log::SnapshotName& name);

    // What has come since, appended. An error is a disk that failed in what it had promised (S13), said for ever, and
    // nothing more is done: the replica stops.
    Result<void> take_outcomes(std::vector<SnapshotOutcome>& outcomes);

 private:
    struct Shared;
    using Work = std::function<Result<std::optional<SnapshotOutcome>>(Shared&)>;
    void run(Work work);
    void note(const SnapshotOutcome& outcome, bool of_present_receive);
    void hold(const Held& held);

    Background& background_;
    std::shared_ptr<Shared> shared_;  // with the work that is not done yet
    std::vector<Held> held_;
    std::vector<Damaged> damaged_;
    bool taking_ = false;
    std::optional<log::SnapshotName> receiving_;
    std::uint64_t received_ = 0;
    std::uint64_t receive_number_ = 0;  // of the present one: outcomes of those before it are dropped
};

}  // namespace lockstep::replica
