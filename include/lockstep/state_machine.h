// What a user replicates.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

// One committed command, as every replica sees it.
struct Entry {
    Index index;
    Ballot ballot;
    // Nanoseconds since the Unix epoch on the leader's clock when it took the command; never goes back along the
    // log. The only time that a state machine may use: its own clock differs between replicas.
    std::uint64_t timestamp_ns = 0;
    // Points into the log's memory: valid until `apply` returns.
    BytesView command;
};

// Where `apply` leaves its answers, one per entry of the batch at most. An entry that gets none is answered with
// zero bytes. The bytes are copied at once.
class Replies {
 public:
    // False where nobody waits for answers (on a follower): building them can be left out.
    bool wanted() const { return wanted_; }
    // `at` is the entry's place in the batch, from 0; each place is set at most once and in rising order.
    void set(std::size_t at, BytesView reply) {
        if (!wanted_) return;
        slots_[at] = {bytes_.size(), reply.size()};
        bytes_.insert(bytes_.end(), reply.begin(), reply.end());
    }

    // For the library: starts a batch of `count` entries, keeping the memory of the one before.
    void begin(std::size_t count, bool wanted) {
        wanted_ = wanted;
        bytes_.clear();
        slots_.assign(wanted ? count : 0, Slot{});
    }
    // For the library: valid until the next `begin` or `set`.
    BytesView at(std::size_t place) const {
        const Slot& slot = slots_[place];
        return BytesView(bytes_).subspan(slot.offset, slot.bytes);
    }

 private:
    struct Slot {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    bool wanted_ = false;
    std::vector<Slot> slots_;
    std::vector<std::byte> bytes_;
};

// Takes the bytes of a snapshot.
class SnapshotSink {
 public:
    virtual ~SnapshotSink() = default;
    // Appends `bytes`, of any number; they are copied or written before it returns. Blocks for the disk. An error (a
    // full disk, a stopping replica) ends the snapshot: hand it on at once.
    virtual Result<void> write(BytesView bytes) = 0;
};

// Gives them back, in the same order.
class SnapshotSource {
 public:
    virtual ~SnapshotSource() = default;
    // Fills `into`; fewer bytes than that only at the end, where it is 0 at last. Blocks for the disk. Errors: the file
    // cannot be read, or is no longer what was written.
    virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
};

// A state as it was at one point of the log, whatever has been applied since.
class SnapshotView {
 public:
    virtual ~SnapshotView() = default;
    // Writes the whole state. Called at most once, on a thread of its own, while the state machine goes on; the view
    // is destroyed there too. Hand on what `sink` answers; an error of the view's own ends the snapshot as well.
    virtual Result<void> write(SnapshotSink& sink) = 0;
};

// A deterministic service: equal entries in equal order make equal state and equal replies, on every replica.
//
// Threads: all calls come from the replica's protocol thread, one at a time, so an implementation needs no lock for
// what only these calls and `read` callbacks touch; those of a replica that comes back with its disk come first, from
// the thread that calls Replica::open. Blocking: a call that takes long holds up this replica; one
// that takes longer than the election time-out costs it the leadership. Errors: there is no way to refuse a
// committed command; answer with an error of the service's own. An exception that leaves `apply` ends the process.
class StateMachine {
 public:
    virtual ~StateMachine() = default;
    // Applies `batch` (at least one entry, rising indices; no-ops and other entries of the protocol are left out).
    virtual void apply(std::span<const Entry> batch, Replies& replies) = 0;

    // Hands out the state as it is now, to be written by another thread while `apply` goes on: so it has to be quick,
    // by copying what is small, or by sharing what changes only by being replaced. Null, as here, where the service
    // has no snapshots: then the log on disk is kept whole, and a replica that has fallen behind what the others'
    // memory holds comes back only by their logs on disk.
    virtual std::unique_ptr<SnapshotView> snapshot() { return nullptr; }
    // Replaces the whole state by one that was written by `SnapshotView::write` on any replica, in this or an earlier
    // version of the service. Blocks this replica, but no other, for as long as it takes. An error stops the replica:
    // the state may be half replaced.
    virtual Result<void> restore(SnapshotSource&) {
        return Error("cannot restore a snapshot: this service has none; run the program that wrote it, or implement "
                     "StateMachine::snapshot and StateMachine::restore");
    }
};

}  // namespace lockstep
