// Runs one case, and says what came of it.
#pragma once

#include "sim/case.h"
#include "sim/clients.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::sim {

enum class Failure : std::uint8_t {
    none,
    safety,       // a rule is broken: something is lost, doubled, or differs
    no_progress,  // nothing hinders the cluster, and it does not get on
    crash,        // a check in the code under test ended the process; only `run_apart` lives to tell
};
const char* to_string(Failure failure);

struct RunResult {
    Failure failure = Failure::none;
    std::string what;                // of a failure: the rule, where and when; then what every replica is doing
    std::uint64_t actions = 0;       // how many were done
    std::uint64_t hash = 0;          // of all that was committed, and of how every request ended
    std::uint64_t acknowledged = 0;
    std::uint64_t unknown = 0;
    std::uint64_t reads = 0;
    std::uint64_t elections = 0;
    std::uint64_t committed = 0;
    std::uint64_t undecided = 0;     // values whose linearizability took too long to decide
    std::uint64_t virtual_ns = 0;
    std::uint64_t to_leader_ns = 0;  // the longest recovery's time to a leader, and from there to a commit
    std::uint64_t to_commit_ns = 0;
};

// Makes the clients of a cluster.
using MakeClients = std::function<std::unique_ptr<Clients>(Cluster& cluster)>;

// With services and clients of the caller's own, on the options' services.
RunResult run(const Case& of, const MakeClients& make_clients, const std::function<void(const std::string&)>& trace);

// On counters and registers (sim/workload.h). `trace`, where it is given, is told what happens, line by line.
RunResult run(const Case& of, const std::function<void(const std::string&)>& trace = nullptr);

}  // namespace lockstep::sim
