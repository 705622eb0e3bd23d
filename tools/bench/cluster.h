// A cluster of three replicas on this machine, for as long as one measurement takes.
#pragma once

#include "tools/bench/process.h"

#include <lockstep/replica.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

inline constexpr std::size_t kReplicas = 3;
inline constexpr std::uint64_t kStartLimitMs = 10'000;  // of one attempt

// What all replicas of a cluster must know. It goes to their processes as command-line arguments.
struct ClusterSpec {
    std::uint64_t cluster_id = 0;
    std::string transport = "tcp";    // or "rdma"
    std::vector<std::string> hosts;   // one per replica
    std::vector<std::uint16_t> ports;
    std::string folder;
    Polling polling = Polling::blocking;
    Durability durability = Durability::memory;
    std::uint32_t election_timeout_ms = 250;
    std::uint32_t heartbeat_ms = 25;

    // A new cluster on these ports.
    static ClusterSpec make(const Ports& ports, const TemporaryFolder& folder, Polling polling);
    // The same, over another transport and on other addresses of this machine.
    static ClusterSpec make(const Ports& ports, const TemporaryFolder& folder, Polling polling,
                            const std::string& transport, const std::vector<std::string>& hosts);
    // The options of replica `id`: 1 has the highest priority, so that it leads.
    Options options(std::uint8_t id) const;
    std::vector<std::string> arguments(std::uint8_t id) const;
};

const char* to_string(Polling polling);

// A state machine that does nothing: what is measured is replication. Its snapshots are empty, and let the log on disk
// go behind them: as in a service that has run for long, the log's files are used again.
class Nothing final : public StateMachine {
 public:
    void apply(std::span<const Entry>, Replies&) override {}
    std::unique_ptr<SnapshotView> snapshot() override;
    Result<void> restore(SnapshotSource&) override { return {}; }
};

// What differs between the clusters of a comparison.
struct ClusterKind {
    Polling polling = Polling::blocking;
    std::string transport = "tcp";
    Durability durability = Durability::memory;
    std::vector<std::string> hosts;
    std::string folder{};  // theirs is made in this one; empty: in the system's for temporary files
    std::uint64_t snapshot_bytes = Options{}.snapshot_bytes;  // of the leader
};

// The body of a process that is one replica and nothing else; runs until it is killed. Returns an exit status.
int run_replica(const ClusterSpec& spec, std::uint8_t id);

// Waits until `replica` leads with every other one's lane streaming. Error: another leads, or the time is over.
Result<void> await_lead(const Replica& replica, std::uint64_t deadline_ns);

// The library's log goes to stderr: what matters only, or all of it.
void log_to_stderr(bool verbose);

// Replica 1 in this process, leading, and the others in processes of their own.
class Cluster {
 public:
    // Tries again, a few times, if another replica than 1 comes to lead; says so on stderr. The leader applies to
    // `state_machine`, which outlives this.
    static Result<Cluster> start(const ClusterKind& kind, StateMachine& state_machine, std::uint64_t deadline_ns);
    Replica& leader() { return *leader_; }

 private:
    Cluster(Ports ports, TemporaryFolder folder) : ports_(std::move(ports)), folder_(std::move(folder)) {}
    static Result<Cluster> start_once(const ClusterKind& kind, StateMachine& state_machine, std::uint64_t deadline_ns);

    Ports ports_;
    TemporaryFolder folder_;
    std::vector<Child> followers_;
    std::unique_ptr<Replica> leader_;  // ends first
};

}  // namespace lockstep::bench
