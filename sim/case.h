// One case for the simulator: what cluster, which faults at which rate, and what is done in which order. A case has a
// text form, so that it can be kept, read, shortened and run again.
#pragma once

#include "sim/cluster.h"

#include <lockstep/result.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sim {

// Whom an action is done to: a replica by its id, or by what it is when the action's turn comes.
struct Target {
    enum class Kind : std::uint8_t { none, replica, leader, marked };
    Kind kind = Kind::none;
    ReplicaId id;
    friend bool operator==(const Target&, const Target&) = default;

    static Target replica(ReplicaId id) { return {Kind::replica, id}; }
    static Target leader() { return {Kind::leader, {}}; }
    static Target marked() { return {Kind::marked, {}}; }  // who led when the last `mark` was done
};

// An action whose target is not there at its turn is left out.
enum class Act : std::uint8_t {
    run,      // `amount` virtual nanoseconds go by
    await,    // runs until somebody leads in a higher ballot than anybody did before, for at most `amount` ns
    mark,     // whoever leads now is `marked` from now on
    add,      // a client adds to counter `key`, in a command of `amount` bytes
    put,      // a client writes register `key`, likewise
    get,      // a client reads `key` (a counter or a register) by a linearizable read
    pause,    // the process stops; its memory can be read and written
    resume,
    crash,    // the process and its memory are gone, unless that would take a majority's
    linger,   // the process is gone, its memory answers for `amount` nanoseconds more; else as `crash`
    restart,  // a new life, which has lost its memory and its vote
    hang,     // the process takes `amount` nanoseconds for its next turn
    jump,     // its wall clock jumps by `amount` milliseconds, back if `key` is 1
    cut,      // nothing goes from `target` to `other` any more
    heal,     // it does again
    heal_all,
    hand_over,  // the leader asks `target` to campaign
    fail,     // the lane from `target` to `other` breaks
    // Where logs are on disk. There a crash takes nothing that was written, and a new life is the voter that it was.
    power,      // as `crash`, and what its disks have not synced is lost, or not
    power_all,  // of all at once
    disk_hang,  // its disks do nothing for `amount` nanoseconds
    disk_fail,  // a write (0) or a sync (1) of its log fails next, or of its snapshots (2, 3), as `amount` says
    rot,        // if it does not run: a bit of its log turns over, drawn by `amount`
    snapshot,   // it is asked for one
    recover,  // faults end; the cluster must make progress within a bound, with `target` paused where there is one
};

struct Action {
    Act act = Act::run;
    Target target;
    Target other;
    std::uint64_t amount = 0;
    std::uint64_t key = 0;
    friend bool operator==(const Action&, const Action&) = default;
};

std::string to_string(const Action& action);

struct Case {
    Cluster::Options options;
    transport::sim::Faults faults;  // from the first leader on; none while the cluster forms
    std::vector<Action> actions;

    // One line for each thing. `read_case` takes exactly what this gives.
    std::string text() const;
};

// Every fault's rate by its name, with the most that makes sense.
struct Rate {
    const char* name;
    std::uint64_t transport::sim::Faults::*rate;
    std::uint64_t most;
};
const std::vector<Rate>& rates();

// The error names the line, and what would be right there.
Result<Case> read_case(const std::string& text);

}  // namespace lockstep::sim
