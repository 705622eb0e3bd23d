// A network of simulated fabrics: one thread, virtual time, one seed; the same seed gives the same run.
//
// Its one-sided semantics are weaker than any hardware's: a write lands in pieces with time between them, its source is
// read when a piece is sent and not when it was posted (F9), its completion comes apart from its landing, and may not
// come at all though it landed (F4). A fence cuts a write anywhere (F3). The memory of a paused process goes on being
// written and read.
#pragma once

#include "consensus/core/random.h"
#include "transport/fabric.h"

#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::transport::sim {

class SimFabric;

// How often things go wrong: chances out of a million per occasion, and times in virtual nanoseconds.
struct Faults {
    std::uint64_t latency_min_ns = 5'000;
    std::uint64_t latency_max_ns = 30'000;
    std::uint64_t slow_chance = 0;             // a message or piece takes up to slow_ns longer
    std::uint64_t slow_ns = 0;
    std::uint64_t message_lost_chance = 0;     // control messages, board answers, reports
    std::uint64_t message_repeated_chance = 0;
    std::uint64_t repeated_late_ns = 0;        // how much later the copy of a message may come
    std::uint64_t lane_breaks_chance = 0;      // per posted write: somewhere in the middle of it
    std::uint64_t completion_lost_chance = 0;  // per write: landed, but the lane breaks instead of saying so
    std::uint64_t retransmit_chance = 0;       // per piece: it is sent again up to retransmit_ns later, from the source
    std::uint64_t retransmit_ns = 0;           // as that is then (F9); nothing behind it goes before
    std::uint64_t read_fails_chance = 0;
    std::uint64_t read_torn_chance = 0;        // a read comes in two parts of different times, or lacks the second
    std::uint64_t read_slow_chance = 0;        // a read of a ring comes up to read_slow_ns later, with the bytes as
    std::uint64_t read_slow_ns = 0;            // they are then
    std::uint64_t piece_bytes = 0;             // writes land in pieces of up to this many bytes; 0: whole
    std::uint64_t fence_slow_chance = 0;       // writes go on landing while their lane is being fenced
    std::uint64_t fence_leaks_chance = 0;      // to be found: a piece lands in spite of the fence (F3 broken)
    std::uint64_t tells_landed = 0;            // 1: the fabric can tell how far bytes have landed (F2)
    // Of the state machine, which the cluster around the network runs: a batch takes up to apply_slow_ns.
    std::uint64_t apply_slow_chance = 0;
    std::uint64_t apply_slow_ns = 0;
};

class Network {
 public:
    Network(std::uint64_t seed, std::uint64_t ring_bytes) : ring_bytes_(ring_bytes), random_(seed) {}

    // Makes the fabric of a new life of `id`; the one before must be gone. The network must outlive it.
    std::unique_ptr<SimFabric> attach(ReplicaId id, Incarnation incarnation);

    std::uint64_t now_ns() const { return now_ns_; }
    core::Random& random() { return random_; }
    Faults& faults() { return faults_; }
    std::uint64_t ring_bytes() const { return ring_bytes_; }

    // Runs the next thing that is due, if it is due by `until_ns`; else moves the time there and says false.
    bool run_one(std::uint64_t until_ns);
    void at(std::uint64_t time_ns, std::function<void()> what);

    // Nothing goes from one to the other any more (one direction): what is under way is lost.
    void cut(ReplicaId from, ReplicaId to);
    void heal(ReplicaId from, ReplicaId to);
    void heal_all();
    bool is_cut(ReplicaId from, ReplicaId to) const { return !cuts_.empty() && cuts_.contains({from, to}); }

    // Holds back what would arrive, until released, in order; for scenarios.
    enum class Kind { message, piece, completion, read, report };
    void hold(Kind kind, ReplicaId from, ReplicaId to);
    void release(Kind kind, ReplicaId from, ReplicaId to);
    void drop_held(Kind kind, ReplicaId from, ReplicaId to);
    // Lets a copy of all that is held arrive, and goes on holding it.
    void repeat_held(Kind kind, ReplicaId from, ReplicaId to);
    // The next write of the ring from one to the other is cut behind its first `bytes`: what follows, and all later
    // ones, are held as pieces; or if the lane `breaks`, they are never sent.
    void cut_next_write(ReplicaId from, ReplicaId to, std::uint64_t bytes, bool breaks);
    // The next read of `of`'s ring by `reader` brings its first `bytes` only, and says nothing of it (F6).
    void tear_next_read(ReplicaId reader, ReplicaId of, std::uint64_t bytes) { read_tears_[{reader, of}] = bytes; }

    // Called when something arrived at a node; `soon` is false for bytes that landed in its ring.
    std::function<void(ReplicaId node, bool soon)> on_arrival;
    // Called when a part of a write or probe has landed, but for what lands while its lane is being fenced.
    std::function<void(ReplicaId at, ReplicaId writer, Incarnation writer_life)> on_landed;
    // Called when somebody is about to connect a lane, by an address that `to` gave out.
    std::function<void(ReplicaId holder, Incarnation life, ReplicaId to, const LaneAddress& address)> on_connect;
    // Called for every control message, when it is sent.
    std::function<void(ReplicaId from, ReplicaId to, std::span<const std::byte> message)> on_message;

 private:
    friend class SimFabric;
    struct Due {
        std::uint64_t time_ns;
        std::uint64_t order;
        std::function<void()> what;
        bool operator>(const Due& other) const {
            return std::tie(time_ns, order) > std::tie(other.time_ns, other.order);
        }
    };
    using Link = std::pair<ReplicaId, ReplicaId>;
    struct WriteCut {
        std::uint64_t bytes;
        bool breaks;
    };

    bool chance(std::uint64_t of_a_million) { return of_a_million != 0 && random_.below(1'000'000) < of_a_million; }
    std::uint64_t latency();
    // Sends something that arrives by `arrive`, or not at all: then `lost` is called, where there is one.
    void deliver(Kind kind, ReplicaId from, ReplicaId to, std::uint64_t earliest_ns, std::function<void()> arrive,
                 std::function<void()> lost = nullptr);
    SimFabric* node(ReplicaId id);
    void detach(ReplicaId id, std::uint64_t life);
    // The operating system of a dead process closes its connections, where that can be heard.
    void announce_end(ReplicaId id, std::uint64_t life);
    // Whether what is sent that way arrives: the link is neither cut nor held.
    bool is_open(Kind kind, ReplicaId from, ReplicaId to) const {
        return !is_cut(from, to) && !held_.contains({kind, {from, to}});
    }
    std::optional<WriteCut> take_write_cut(ReplicaId from, ReplicaId to);
    std::uint64_t take_read_tear(ReplicaId reader, ReplicaId of);
    std::uint64_t fresh_number() { return ++numbers_; }

    const std::uint64_t ring_bytes_;
    core::Random random_;
    Faults faults_;
    std::uint64_t now_ns_ = 1'000'000'000;
    std::uint64_t order_ = 0;
    std::uint64_t numbers_ = 0;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::map<ReplicaId, SimFabric*> nodes_;
    std::set<Link> cuts_;
    std::map<std::pair<Kind, Link>, std::vector<std::function<void()>>> held_;
    std::map<Link, WriteCut> write_cuts_;
    std::map<Link, std::uint64_t> read_tears_;
};

}  // namespace lockstep::transport::sim
