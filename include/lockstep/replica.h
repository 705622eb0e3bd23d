// A replica: the door to the library.
#pragma once

#include <lockstep/options.h>
#include <lockstep/result.h>
#include <lockstep/state_machine.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

// How a proposal or a read ended: exactly one of these, exactly once (S17).
enum class Fate : std::uint8_t {
    applied,   // committed and applied here; a read: the state may be read now
    rejected,  // it will never take effect; `Outcome::reason` says why
    unknown,   // it may or may not take effect, now or later: leadership was lost, or the replica stopped
};

// Why a proposal or a read was rejected.
enum class Reason : std::uint8_t {
    none,
    not_leader,   // `Outcome::leader` names who leads, if that is known; ask there
    busy,         // a queue or the log's window is full; try again later
    too_large,    // larger than Options::max_command_bytes()
    stopped,      // `stop` was called, or the replica stopped by itself
};

const char* to_string(Fate fate);
const char* to_string(Reason reason);

struct Outcome {
    Fate fate = Fate::unknown;
    Reason reason = Reason::none;
    ReplicaId leader;   // for not_leader; none if unknown
    Index index;        // of the applied entry; for a read, what the state holds at least
    BytesView reply;    // what the state machine answered; valid until the callback returns
};

// A learner receives the log, and does not vote: a replica whose memory or disk was lost, until it is taken in again;
// or whose log on disk was found damaged, until it has repaired that from its leader (`Status::note` says which).
enum class Role : std::uint8_t { forming, learner, follower, candidate, leader, stopped };
const char* to_string(Role role);

// How the leader sees one of the others.
struct PeerStatus {
    ReplicaId id;
    bool connected = false;
    bool votes = false;        // the life of it that is, or was last, connected
    std::string path;          // "tcp", "tcp (no RDMA: why)", "rdma (device, GID)", or why there is none
    std::string lane;          // "none", "opening", "repairing", "streaming", "detached: ..."
    Position landed;           // the log's end in that peer's memory, as far as it is proven
    Position consumed;         // what it has reported as applied, less the kept tail
};

struct Status {
    ReplicaId id;
    Incarnation incarnation;
    Role role = Role::follower;
    ReplicaId leader;          // none if unknown
    Ballot ballot;             // the promised ballot
    Index committed;
    Index applied;
    Position end;              // of the verified log
    std::string durability;    // "memory", "persist_async", "durable"
    Position durable;          // how far the log is on this replica's disk; 0 with "memory"
    Index snapshot;            // of the newest complete snapshot here; 0: none
    std::uint64_t snapshot_ns = 0;  // when that was complete, by the system's clock; 0: before this start
    std::string note;          // what a person should know: a full log, a stopped replica's reason; else empty
    std::vector<PeerStatus> peers;
    // Counters since the start.
    std::uint64_t entries_committed = 0;
    std::uint64_t writes_posted = 0;      // ranges handed to the fabric, all peers together
    std::uint64_t log_batches = 0;        // of entries that were written to the log on disk, with an fdatasync each
    std::uint64_t elections_started = 0;
};

// One replica of a cluster, with its protocol thread.
//
// Threads: every member may be called from any thread, callbacks included, unless it says otherwise. Callbacks run
// on the protocol thread, where the state machine runs too: they may read its state without a lock, must not block,
// and may call `propose` and `read` again. Ownership: `propose` copies the command before it returns. Limits: see
// Options. Errors come as values; a broken invariant aborts the process with what was expected and what was found.
// Log lines go to the spdlog logger that the program has registered as "lockstep" before the first `open`, else to
// standard error.
class Replica {
 public:
    using Done = std::function<void(const Outcome&)>;
    using SnapshotTaken = std::function<void(const Result<Index>& taken)>;

    // Starts a replica: takes and registers its memory, binds its peer port, starts its threads. `state_machine`
    // must outlive the replica. Blocks until the port is bound, not until there is a leader; in durable mode also until
    // the log on disk is read back, whose committed commands are applied on the calling thread meanwhile. Errors: a bad
    // option; the port or the data folder cannot be used; the data folder is another replica's, its hard state cannot
    // be read, or it holds no log though it was part of a cluster; it is empty, and neither `form` nor `join` is set.
    static Result<std::unique_ptr<Replica>> open(const Options& options, StateMachine& state_machine);
    // As `stop`.
    ~Replica();
    Replica(const Replica&) = delete;
    Replica& operator=(const Replica&) = delete;

    // Asks for `command` to be appended to the log. Never blocks for I/O. `done` is called exactly once, possibly
    // before this returns if the queue is full or the replica has stopped. Commands that one thread proposes are
    // appended in that order.
    void propose(BytesView command, Done done);
    // Asks for a linearizable read: when `done` gets `applied`, the state machine holds everything that was
    // acknowledged before this call, and may be read inside the callback (S15). Leader only.
    void read(Done done);
    // Asks for a snapshot of the state as it is about now. Never blocks. `done` is called once, on the protocol thread,
    // when it is durable, with the index up to which it holds the state (an older one's, where nothing has been applied
    // since); or with why there is none: the service has none, the disk is full, the replica has stopped. Any replica,
    // leader or not; requests that come while one is being taken wait for the next.
    void take_snapshot(SnapshotTaken done);
    // What the replica knows of itself, at most a heartbeat old. Takes a short lock.
    Status status() const;
    // Stops: every open proposal ends as unknown, later ones as rejected; joins the threads. Blocks until no callback
    // runs any more; must not be called from a callback. May be called twice.
    void stop();

 private:
    class Impl;
    explicit Replica(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
