// What the server needs of a replica: the one door to the log.
#pragma once

#include <lockstep/replica.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::counter {

// What INFO shows of the replica.
struct LogStatus {
    bool stopped = false;
    ReplicaId leader;      // none if unknown
    std::string role;
    std::string ballot;
    std::string durability;
    std::string note;
    std::string incarnation;
    std::uint64_t committed = 0;
    std::uint64_t applied = 0;
    std::uint64_t end = 0;
    std::uint64_t durable = 0;   // how far the log is on this disk
    std::uint64_t snapshot = 0;  // the index of the newest one; 0: none
    std::uint64_t snapshot_ns = 0;  // when it was complete; 0: before this start
    std::uint64_t entries_committed = 0;
    std::uint64_t writes_posted = 0;
    std::uint64_t elections_started = 0;
    struct Peer {
        ReplicaId id;
        bool connected = false;
        bool votes = false;
        std::string path;
        std::string lane;
        std::uint64_t landed = 0;
        std::uint64_t consumed = 0;
    };
    std::vector<Peer> peers;
};

// Threads: as lockstep::Replica, which stands behind it in production; tests have one of their own.
class Log {
 public:
    using Done = Replica::Done;
    virtual ~Log() = default;
    // As Replica::propose and Replica::read: `done` is called exactly once, on any thread, possibly before this
    // returns.
    virtual void propose(BytesView command, Done done) = 0;
    virtual void read(Done done) = 0;
    // As Replica::take_snapshot.
    virtual void take_snapshot(Replica::SnapshotTaken done) = 0;
    virtual LogStatus status() const = 0;
};

}  // namespace lockstep::counter
