// What a user replicates.
#pragma once

#include <lockstep/types.h>

#include <cstdint>
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
};

}  // namespace lockstep
