// Reads the hard state and the WAL back, verifies all of it, and tells a torn tail, a suspect end and corruption apart
// (S14).
#pragma once

#include "log/disk/disk.h"
#include "log/ring.h"
#include "log/wal/format.h"

#include <lockstep/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::log {

// Whose folder it has to be.
struct Identity {
    std::uint64_t cluster_id = 0;
    ReplicaId replica;
    std::uint64_t ring_bytes = 0;
};

// A file of one lap of the ring.
struct Segment {
    Position first;  // of the lap
    Point start;     // of its first entry; of segments behind a break, what their header says

    friend bool operator==(const Segment&, const Segment&) = default;
};

struct Leftover {
    FileName name;
    bool reusable = false;  // as the next segment
};

struct Recovered {
    HardState hard;
    std::uint64_t hard_sequence = 0;
    bool hard_in_both_slots = false;
    Floor floor;          // the newest on disk; generation 0: none
    Point base;           // where the log begins: the hard state's, or what RecoverOptions said
    Point end;            // of the chain that verified, from the base on
    // What is the matter behind `end` (a torn tail is nothing).
    Damage found = Damage::none;
    // The same, and what was lost up to where: now, or before an earlier start and not made up for since. Where its end
    // has the index kUnknown, nobody knows how far it went.
    Owed owed;
    // Of corruption: the first point behind `end` that an intact segment header or floor vouches for. Bytes of another
    // replica that verify from `end` to exactly this point repair it (`patch`).
    Point resume;
    // The ring holds the verified stream from here to `end` (S6's low mark); may lie inside an entry.
    Position ring_from;
    std::vector<Segment> segments;     // of this log, by position; those behind a break or a gap, too
    std::vector<std::byte> last_front;  // what the last of them has in front of its part of the stream
    std::vector<Leftover> leftovers;   // files of no use any more
    std::uint64_t bytes_read = 0;
    std::string story;  // of damage, for a person: which file, where in it, what was expected
};
inline constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

struct RecoverOptions {
    // Begins there instead of where the hard state says: at a point that a durable snapshot of this log is of. For
    // where the log is damaged from its base to there.
    std::optional<Point> begin{};
    // Called for every entry, in order; its payload lies in the ring.
    std::function<void(const VerifiedEntry&)> visit{};
    // Called now and then with how many bytes are read, of how many at most.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

// The hard state, where the folder has one; an error where it has a log but no readable hard state. Blocks.
Result<std::optional<NumberedHardState>> read_hard_state(Disk& disk);

// Reads everything; changes nothing on disk. Blocks for as long as reading takes. `ring` has the size that `identity`
// names; it gets the genesis, and holds the end of the log afterwards. Nothing where the folder holds no log. Errors:
// the folder is another replica's, another cluster's or has another ring size; there is a log but no readable hard
// state; a read fails.
Result<std::optional<Recovered>> recover(Disk& disk, const Identity& identity, Ring& ring,
                                         const RecoverOptions& options = {});

// What was read may be in the system's memory only, where the process that wrote it was killed: makes it durable,
// before anybody counts on it. `ring` holds what `recover` left in it. Blocks.
Result<void> settle(Disk& disk, const Recovered& recovered, const Ring& ring);

// Writes the stream's bytes from `at` on, which lie in one lap, over what the WAL has there, durably. For repairing
// what `recover` found corrupt, with bytes that verified; `recover` again afterwards.
Result<void> patch(Disk& disk, const HardState& hard, Position at, BytesView bytes);

// Puts the first hard state into a folder without one: complete or absent.
Result<void> create_log(Disk& disk, const HardState& hard);

}  // namespace lockstep::log
