// A cluster of replicas without a network or a protocol, for tests of the counter's server.
#pragma once

#include "tools/counter/log.h"
#include "tools/counter/machine.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {

// One leader at most; what is proposed to it is applied by all replicas at once, on a thread of the cluster's own.
// Threads: any may call anything.
class FakeCluster {
 public:
    FakeCluster(std::uint8_t replicas, const Limits& limits);
    ~FakeCluster();

    Log& log(ReplicaId id) { return *replicas_.at(id)->log; }
    Machine& machine(ReplicaId id) { return replicas_.at(id)->machine; }
    // Who leads from now on; none: nobody. What the leader before has not finished ends as unknown, and has taken
    // effect if `takes_effect`.
    void lead(ReplicaId id, bool takes_effect = false);
    // While held, proposals and reads wait.
    void hold(bool held);
    // While busy, the leader rejects proposals so.
    void set_busy(bool busy);
    // What the replicas that do not lead say of who does; by default the truth.
    void tell(ReplicaId id, ReplicaId leader);
    // What `status` of every replica says of who leads; none: the truth again.
    void believe(ReplicaId leader);
    // While held, snapshots that were asked for wait; they fail with `why`, if there is one, else succeed.
    void hold_snapshots(bool held, const std::string& why = {});
    // Entries applied so far.
    std::uint64_t entries() const;
    // Waits until that many proposals and reads are with the leader, unfinished; false after ten seconds.
    bool wait_for_pending(std::size_t count);
    // Ends everything as Replica::stop does.
    void stop();

 private:
    class FakeLog;
    struct Replica {
        explicit Replica(const Limits& limits) : machine(limits) {}
        Machine machine;
        std::unique_ptr<Log> log;
        ReplicaId told;
        bool lied_to = false;
    };
    struct Pending {
        std::string command;
        Log::Done done;
        bool read = false;
    };
    void submit(ReplicaId at, Pending pending);
    void run();
    void carry_out(std::deque<Pending> batch);
    void apply(const std::deque<Pending>& batch);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<ReplicaId, std::unique_ptr<Replica>> replicas_;
    std::deque<Pending> pending_;
    std::vector<lockstep::Replica::SnapshotTaken> snapshots_;
    bool snapshots_held_ = false;
    ReplicaId leader_;
    ReplicaId believed_;
    std::uint64_t entries_ = 0;
    Replies replies_;
    bool held_ = false;
    bool busy_ = false;
    bool stopped_ = false;
    bool working_ = false;
    std::thread thread_;
};

}  // namespace lockstep::counter
