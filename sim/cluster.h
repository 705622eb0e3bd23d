// A cluster in the simulator: production drivers and cores over simulated fabrics, in virtual time.
#pragma once

#include "consensus/replica/driver.h"
#include "consensus/replica/snapshot_store.h"
#include "consensus/replica/wal_reader.h"
#include "consensus/replica/wal_storage.h"
#include "log/disk/sim_disk.h"
#include "sim/history.h"
#include "sim/recorder.h"
#include "sim/workers.h"
#include "transport/sim/fabric.h"
#include "transport/sim/network.h"

#include <lockstep/sim.h>
#include <lockstep/state_machine.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::sim {

class Cluster {
 public:
    struct Options {
        std::size_t replicas = 3;
        std::uint64_t ring_bytes = 16 * 1024;
        std::uint64_t seed = 1;
        std::uint64_t election_timeout_ns = 100'000'000;
        std::uint64_t heartbeat_ns = 10'000'000;
        std::size_t max_queued = 256;
        std::uint64_t drift_ppm = 0;  // clocks run up to so many millionths faster or slower, each its own way
        Durability durability = Durability::memory;
        replica::SnapshotTriggers snapshot_after{};
        std::function<std::unique_ptr<Service>(ReplicaId)> make_service{};  // none: commands are kept as they come
    };

    explicit Cluster(const Options& options);
    ~Cluster();

    // Starts a first life of `id`, taking part in forming.
    void start(ReplicaId id);
    void start_all();
    // Starts a life of `id` that takes no part in forming. In durable mode it comes back with what its disk holds;
    // where that is nothing, and in memory mode, as another incarnation (S12).
    void restart(ReplicaId id);
    // While it is down its disk is lost: the next one is empty.
    void lose_disk(ReplicaId id);
    // While it is down its disk is put aside, as one that seemed lost: the next one is empty. Or the `which`th of those
    // put aside is put back, and the one that it has, if any, goes aside.
    void put_disk_aside(ReplicaId id);
    void put_disk_back(ReplicaId id, std::size_t which);
    // The lives whose disks are aside; 0 for one that held no log.
    std::vector<Incarnation> disks_aside(ReplicaId id);
    // Ends its process: its memory is gone, and with `power` what its disk had not synced, perhaps.
    void crash(ReplicaId id, bool power = false);
    // In durable mode: power is lost everywhere, also where no process runs any more.
    void black_out();
    // In durable mode, for `ns`: its disks do nothing.
    void hang_disks(ReplicaId id, std::uint64_t ns);
    // One bit of its log on disk turns over, drawn by `where`, while it does not run; at most in a minority until they
    // have repaired it: rot in more may take what was acknowledged, and who has lost that does not vote (S14). False:
    // nothing did.
    bool rot(ReplicaId id, std::uint64_t where);
    // What disks were to do wrong, they do not.
    void calm_disks();
    log::SimDisk& disk(ReplicaId id) { return machines_.at(id)->disk; }
    // Where its snapshots are; in memory mode a new one for each life.
    log::SimDisk& snapshot_disk(ReplicaId id) { return *nodes_.at(id)->snapshot_disk; }
    // The same, but its memory goes on answering for `ns`; `heard`: peers see its connections close at once.
    void crash_lingering(ReplicaId id, std::uint64_t ns, bool heard);
    // Its process does nothing for `ns`, as when the state machine takes so long.
    void hang(ReplicaId id, std::uint64_t ns);
    // For how long anybody's process will go on doing nothing so.
    std::uint64_t busy_ns() const;
    // Its wall clock jumps.
    void jump_clock(ReplicaId id, std::int64_t ns) { nodes_.at(id)->wall_jump_ns += ns; }
    // A paused process does nothing, but its memory is there for others to read and write.
    void pause(ReplicaId id);
    void resume(ReplicaId id);

    // Throws Violation as soon as a rule is broken.
    void run_for(std::uint64_t ns);
    // Runs until `done()`; false if that did not come within `ns`.
    template <class Done>
    bool run_until(std::uint64_t ns, Done&& done) {
        const std::uint64_t end_ns = network_.now_ns() + ns;
        while (!done()) {
            if (network_.now_ns() >= end_ns) return false;
            network_.run_one(end_ns);
        }
        return true;
    }

    // Numbers that name proposals, each once.
    std::uint64_t next_number() { return ++proposals_; }
    // Proposes through `id`; the number is the command (padded with blanks to `bytes`). False if it was not taken.
    bool propose(ReplicaId id, std::size_t bytes = 0);
    void read(ReplicaId id);
    // The same for a command of the caller's own, whose end only the caller hears of. False if the queue is full: then
    // `done` is not called.
    bool propose(ReplicaId id, std::string_view command, Replica::Done done);
    bool read(ReplicaId id, Replica::Done done);

    // The one that leads in the highest ballot, if any.
    std::optional<ReplicaId> leader() const;
    bool alive(ReplicaId id) const { return nodes_.contains(id); }
    // Whether the memory of a dead life of it still answers.
    bool lingers(ReplicaId id) const;
    bool durable() const { return options_.durability == Durability::durable; }
    bool paused(ReplicaId id) const { return nodes_.at(id)->paused; }
    Incarnation incarnation(ReplicaId id) const { return nodes_.at(id)->incarnation; }
    const core::Core& core(ReplicaId id) const { return nodes_.at(id)->driver->core(); }
    replica::Driver& driver(ReplicaId id) { return *nodes_.at(id)->driver; }
    transport::sim::SimFabric& fabric(ReplicaId id) { return *nodes_.at(id)->fabric; }
    const Recorder& recorder(ReplicaId id) const { return *nodes_.at(id)->recorder; }
    Service& service(ReplicaId id) { return *nodes_.at(id)->service; }
    std::size_t replicas() const { return options_.replicas; }
    // Turns of all drivers so far.
    std::uint64_t turns() const { return turns_; }
    std::vector<ReplicaId> ids() const;
    // What every replica is doing, a line each, for a person.
    std::string describe() const;
    transport::sim::Network& network() { return network_; }
    History& history() { return history_; }

    // Where to tell, for a person, what happens: who leads, what is sent. None: nowhere.
    std::function<void(const std::string&)> trace;

 private:
    // What outlives a replica's process where the log is kept on disk.
    struct Machine {
        explicit Machine(const log::SimDisk::Draw& draw)
            : disk(draw), snapshots(std::make_shared<log::SimDisk>(draw)) {}
        log::SimDisk disk;
        std::shared_ptr<log::SimDisk> snapshots;
        core::Config voters;
        bool formed = false;
        bool rotten = false;
        std::uint64_t hangs_until_ns = 0;
    };
    // The memory of a process that does nothing any more, and what it was posting.
    struct Lingering {
        std::unique_ptr<transport::sim::SimFabric> fabric;
        bool stopped = false;  // by itself (S13), and not by a crash
    };
    struct Node final : replica::Clock, replica::FormationStore {
        Node(Cluster& owner, ReplicaId node_id, Incarnation disk_life, bool form);
        core::Now now() override;
        Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) override;
        log::Identity identity() const { return {1, id, cluster.options_.ring_bytes}; }

        Cluster& cluster;
        ReplicaId id;
        Incarnation incarnation;       // what the protocol knows it by
        Incarnation life;              // of this process: what the checkers know it by
        Machine* machine = nullptr;
        std::unique_ptr<transport::sim::SimFabric> fabric;
        std::vector<std::byte> scratch_storage;
        std::unique_ptr<Service> service;
        std::unique_ptr<Recorder> recorder;
        replica::RequestQueue queue;
        std::vector<std::byte> copy_storage;
        std::unique_ptr<SimWorker> worker;
        std::unique_ptr<replica::WalStorage> storage;
        std::shared_ptr<log::SimDisk> snapshot_disk;
        std::unique_ptr<SimBackground> background;
        std::unique_ptr<replica::SnapshotStore> snapshots;
        std::unique_ptr<replica::WalReader> wal_reader;
        std::unique_ptr<replica::Driver> driver;
        bool paused = false;
        std::int64_t drift_ppm = 0;
        std::int64_t wall_jump_ns = 0;
        std::uint64_t busy_until_ns = 0;
        std::uint64_t batches = 0;     // applied before the present turn
        Role role = Role::forming;     // as last told
        log::Point counted_at;         // the end of its log when it was last asked by which config it counts
        Ballot led;                    // the newest ballot led in, and the low mark then
        Position led_low_mark;
        std::uint64_t turn_at_ns = 0;  // the one turn that is planned; 0: none
        std::uint64_t plan = 0;        // rises with each plan: older ones are void
    };

    void plan_turn(Node& node, std::uint64_t at_ns);
    void turn(Node& node);
    void check_node(Node& node);
    void check_low_mark(Node& node);
    void check_bounds(Node& node);
    void stop_for_good(Node& node);
    void linger(Node& node, std::uint64_t ns, bool stopped);
    void close_files(ReplicaId id, bool power);
    void check_promise(const Node& node, Ballot promised) const;
    bool rotten(ReplicaId id, Machine& machine);
    void message_sent(ReplicaId from, ReplicaId to, std::span<const std::byte> message);
    void landed(ReplicaId at, ReplicaId writer, Incarnation writer_life);
    void tell(const std::string& text) const;
    void start(ReplicaId id, bool form);
    log::SimDisk::Draw draw() {
        return [this](std::uint64_t bound) { return network_.random().below(bound); };
    }
    core::CoreOptions core_options(ReplicaId id, Incarnation incarnation, bool form);

    const Options options_;
    transport::sim::Network network_;
    History history_;
    std::map<ReplicaId, std::unique_ptr<Machine>> machines_;
    std::map<ReplicaId, std::vector<std::unique_ptr<Machine>>> aside_;
    std::map<ReplicaId, std::unique_ptr<Node>> nodes_;
    std::map<std::uint64_t, Lingering> lingering_;  // by a number of their own
    std::uint64_t proposals_ = 0;
    std::uint64_t turns_ = 0;
    // How far each had come when it was last seen, by who votes.
    std::map<std::pair<ReplicaId, Incarnation>, Position> commits_;
};

}  // namespace lockstep::sim
