// lockstep-bench: how fast a cluster of three commits, and how near that is to what the machine gives.
#include "tools/bench/compare.h"
#include "tools/bench/disk_limit.h"
#include "tools/bench/failover.h"
#include "tools/bench/instructions.h"
#include "tools/bench/limit.h"
#include "tools/bench/rdma_limit.h"
#include "tools/bench/recovery.h"
#include "tools/bench/snapshot.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <map>

namespace lockstep::bench {
namespace {

const std::map<std::string, Polling> kPollings = {
    {"blocking", Polling::blocking}, {"adaptive", Polling::adaptive}, {"spin", Polling::spin}};

const std::map<std::string, Durability> kDurabilities = {{"memory", Durability::memory},
                                                          {"persist_async", Durability::persist_async},
                                                          {"durable", Durability::durable}};

// Takes one of the names for its value. (CLI11's own says only "Check x" of one that is not among them.)
template <class Value>
CLI::Validator named(const std::map<std::string, Value>& names) {
    return CLI::Validator(
        [&names](std::string& word) {
            if (const auto found = names.find(word); found != names.end()) {
                word = std::to_string(static_cast<int>(found->second));
                return std::string();
            }
            std::string all;
            for (const auto& [name, value] : names) all += (all.empty() ? "" : ", ") + name;
            return "\"" + word + "\" is none of " + all;
        },
        "");
}

// What a subcommand that was chosen runs.
using Action = std::function<int()>;

void add_hosts(CLI::App& app, std::vector<std::string>& hosts) {
    app.add_option("--hosts", hosts, "Addresses of this machine, one for each of the three replicas")
        ->delimiter(',')
        ->expected(kReplicas)
        ->default_str("127.0.0.1 for all");
}

void add_plan(CLI::App& app, Plan& plan) {
    app.add_option("--bytes", plan.bytes, "Payload sizes")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--depth", plan.depths, "Proposals open at a time")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--polling", plan.pollings, "How threads wait: blocking, adaptive, spin; several go by turns")
        ->delimiter(',')
        ->transform(named(kPollings))
        ->type_name("HOW")
        ->default_str("blocking");
    app.add_option("--transport", plan.transports, "tcp, rdma; several go by turns")
        ->delimiter(',')
        ->check(CLI::IsMember({"tcp", "rdma"}))
        ->default_str("tcp");
    app.add_option("--durability", plan.durabilities, "memory, persist_async, durable; several go by turns")
        ->delimiter(',')
        ->transform(named(kDurabilities))
        ->type_name("WHERE")
        ->default_str("memory");
    app.add_option("--folder", plan.folder, "Keep the replicas' data, and measure the disk, in this folder")
        ->check(CLI::ExistingDirectory)
        ->type_name("FOLDER")
        ->default_str("one for temporary files");
    add_hosts(app, plan.hosts);
    CLI::Option* rounds = app.add_option("--rounds", plan.rounds, "How often all is measured; medians count")
                              ->check(CLI::Range(1, 1000))
                              ->capture_default_str();
    CLI::Option* seconds = app.add_option("--seconds", plan.seconds, "How long each measurement takes")
                               ->check(CLI::Range(0.01, 600.0))
                               ->capture_default_str();
    app.add_flag_callback("--quick", [&plan] { plan.make_quick(); }, "Short measurements: ends within 30 seconds")
        ->excludes(rounds, seconds);
    app.add_option("--json", plan.json, "Write the results there, as one array of objects")->type_name("FILE");
    app.add_option("--plot", plan.plot, "Draw the latency distributions there, as SVG")->type_name("FILE");
}

void add_measurements(CLI::App& app, Plan& plan, Action& action) {
    CLI::App* commit = app.add_subcommand("commit", "Latency and throughput of commits, three replicas as processes");
    CLI::App* limit = app.add_subcommand("limit", "What plain Asio or raw verbs do: post to two processes, await one");
    CLI::App* compare = app.add_subcommand("compare", "Both by turns, and their ratio");
    for (CLI::App* chosen : {commit, limit, compare}) {
        add_plan(*chosen, plan);
        chosen->callback([&plan, &action, chosen, commit, limit] {
            plan.commit = chosen != limit;
            plan.limit = chosen != commit;
            action = [&plan] { return run_compare(plan); };
        });
    }
}

void add_disk_limit(CLI::App& app, DiskLimitPlan& plan, Action& action) {
    CLI::App* disk = app.add_subcommand("disk", "What the disk does: write some bytes, fdatasync, one at a time");
    disk->add_option("--folder", plan.folder, "On the disk that is meant; needs 64 MiB there")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    disk->add_option("--bytes", plan.bytes, "Bytes of a write")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    disk->add_option("--seconds", plan.seconds, "How long each measurement takes")
        ->check(CLI::Range(0.01, 600.0))
        ->capture_default_str();
    disk->add_option("--json", plan.json, "Write the results there, as one array of objects")->type_name("FILE");
    disk->callback([&plan, &action] { action = [&plan] { return run_disk_limit(plan); }; });
}

void add_failover(CLI::App& app, FailoverPlan& plan, Action& action) {
    CLI::App* failover = app.add_subcommand("failover", "From the leader's SIGKILL to the next acknowledgement");
    CLI::Option* rounds = failover->add_option("--rounds", plan.rounds, "Fresh clusters to try")
                              ->check(CLI::Range(1, 10'000))
                              ->capture_default_str();
    failover->add_option("--polling", plan.polling, "How threads wait: blocking, adaptive or spin")
        ->transform(named(kPollings))
        ->type_name("HOW")
        ->default_str("blocking");
    failover->add_option("--transport", plan.transport, "tcp or rdma")
        ->check(CLI::IsMember({"tcp", "rdma"}))
        ->capture_default_str();
    add_hosts(*failover, plan.hosts);
    failover->add_option("--election-timeout-ms", plan.election_timeout_ms, "More on a machine that is busy")
        ->check(CLI::Range(10, 60'000))
        ->capture_default_str();
    failover->add_flag_callback("--quick", [&plan] { plan.rounds = 10; }, "Ten rounds")->excludes(rounds);
    failover->callback([&plan, &action] { action = [&plan] { return run_failover(plan); }; });
}

void add_snapshot(CLI::App& app, SnapshotPlan& plan, Action& action) {
    CLI::App* snapshot = app.add_subcommand("snapshot", "Commits while the leader writes a snapshot, and before");
    snapshot->add_option("--mib", plan.mib, "How large the state is")
        ->check(CLI::Range(1, 65'536))
        ->capture_default_str();
    snapshot->add_option("--bytes", plan.bytes, "Payload")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    snapshot->add_option("--depth", plan.depths, "Proposals open at a time")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    snapshot->add_option("--durability", plan.durability, "memory, persist_async or durable")
        ->transform(named(kDurabilities))
        ->type_name("WHERE")
        ->default_str("durable");
    snapshot->add_option("--polling", plan.polling, "How threads wait: blocking, adaptive or spin")
        ->transform(named(kPollings))
        ->type_name("HOW")
        ->default_str("blocking");
    snapshot->add_option("--folder", plan.folder, "Keep the replicas' data in this folder")
        ->check(CLI::ExistingDirectory)
        ->type_name("FOLDER")
        ->default_str("one for temporary files");
    snapshot->add_option("--rounds", plan.rounds, "Snapshots at each depth")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    snapshot->add_option("--seconds", plan.seconds, "How long commits are measured before each")
        ->check(CLI::Range(0.1, 600.0))
        ->capture_default_str();
    snapshot->add_option("--json", plan.json, "Write the results there, as one array of objects")->type_name("FILE");
    snapshot->callback([&plan, &action] { action = [&plan] { return run_snapshot(plan); }; });
}

void add_recovery(CLI::App& app, RecoveryPlan& plan, Action& action) {
    CLI::App* recovery = app.add_subcommand("recovery", "How fast a replica comes back with its log");
    recovery->add_option("--mib", plan.mib, "How large the log is")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    recovery->add_option("--bytes", plan.bytes, "Payload")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    recovery->add_option("--rounds", plan.rounds, "How often")->check(CLI::Range(1, 1000))->capture_default_str();
    recovery->add_option("--folder", plan.folder, "Keep the replica's data in this folder")
        ->check(CLI::ExistingDirectory)
        ->type_name("FOLDER");
    recovery->add_option("--json", plan.json, "Write the results there, as an array of one object")->type_name("FILE");
    recovery->callback([&plan, &action] { action = [&plan] { return run_recovery(plan); }; });
}

void add_instructions(CLI::App& app, InstructionsPlan& plan, Action& action) {
    CLI::App* instructions = app.add_subcommand(
        "instructions", "Instructions per entry on the leader's protocol thread, counted by valgrind");
    instructions->add_option("--bytes", plan.bytes, "Payload")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    instructions->add_option("--depth", plan.depth, "Proposals open at a time")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    instructions->add_option("--entries", plan.entries, "Of the shorter run; the longer one has twice as many")
        ->check(CLI::Range(1'000, 10'000'000))
        ->capture_default_str();
    instructions->add_option("--functions", plan.functions, "How many of the costliest functions to name")
        ->capture_default_str();
    instructions->add_option("--keep", plan.keep, "Leave callgrind's files in this folder")->type_name("FOLDER");
    instructions->callback([&plan, &action] { action = [&plan] { return run_instructions(plan); }; });
}

// What a process that this program starts is told.
struct Part {
    ClusterSpec spec;
    unsigned id = 0;
    int descriptor = -1;
    std::string host;
    std::size_t bytes = 64;
    std::size_t depth = 64;
    std::uint64_t entries = 1;
};

void add_cluster(CLI::App& app, Part& part) {
    app.add_option("--id", part.id)->required()->check(CLI::Range(1, 255));
    app.add_option("--cluster-id", part.spec.cluster_id)->required();
    app.add_option("--transport", part.spec.transport)->required();
    app.add_option("--hosts", part.spec.hosts)->delimiter(',')->required();
    app.add_option("--ports", part.spec.ports)->delimiter(',')->required();
    app.add_option("--folder", part.spec.folder)->required();
    app.add_option("--polling", part.spec.polling)->transform(named(kPollings))->required();
    app.add_option("--durability", part.spec.durability)
        ->transform(named(kDurabilities))
        ->required();
    app.add_option("--election-timeout-ms", part.spec.election_timeout_ms)->required();
    app.add_option("--heartbeat-ms", part.spec.heartbeat_ms)->required();
}

// Parts are started by the other subcommands only, and not shown.
void add_parts(CLI::App& app, Part& part, Action& action) {
    const auto add = [&](const char* name, std::function<int()> body) {
        CLI::App* added = app.add_subcommand(name)->group("");
        added->callback([&action, body] { action = body; });
        return added;
    };
    const auto id = [&part] { return static_cast<std::uint8_t>(part.id); };
    add_cluster(*add("replica", [&part, id] { return run_replica(part.spec, id()); }), part);
    CLI::App* failover = add("failover-replica", [&part, id] {
        return run_failover_replica(part.spec, id(), part.descriptor);
    });
    add_cluster(*failover, part);
    failover->add_option("--descriptor", part.descriptor)->required();
    CLI::App* leader = add("leader", [&part] {
        return run_counted_leader(part.spec, part.bytes, part.depth, part.entries);
    });
    add_cluster(*leader, part);
    leader->add_option("--bytes", part.bytes)->required();
    leader->add_option("--depth", part.depth)->required();
    leader->add_option("--entries", part.entries)->required();
    CLI::App* peer = add("peer", [&part] { return run_peer(part.descriptor, part.bytes, part.spec.polling); });
    peer->add_option("--descriptor", part.descriptor)->required();
    peer->add_option("--bytes", part.bytes)->required();
    peer->add_option("--polling", part.spec.polling)->transform(named(kPollings))->required();
    CLI::App* rdma_peer = add("rdma-peer", [&part] { return run_rdma_peer(part.descriptor, part.host, part.bytes); });
    rdma_peer->add_option("--descriptor", part.descriptor)->required();
    rdma_peer->add_option("--host", part.host)->required();
    rdma_peer->add_option("--bytes", part.bytes)->required();
}

int run(int argc, char** argv) {
    CLI::App app("Measures Lockstep on this machine. docs/benchmarks.md says how, and how to read the numbers.");
    app.require_subcommand(1);
    Plan plan;
    DiskLimitPlan disk_plan;
    FailoverPlan failover_plan;
    SnapshotPlan snapshot_plan;
    RecoveryPlan recovery_plan;
    InstructionsPlan instructions_plan;
    Part part;
    Action action;
    add_measurements(app, plan, action);
    add_disk_limit(app, disk_plan, action);
    add_failover(app, failover_plan, action);
    add_snapshot(app, snapshot_plan, action);
    add_recovery(app, recovery_plan, action);
    add_instructions(app, instructions_plan, action);
    add_parts(app, part, action);
    bool verbose = false;
    app.add_flag("--verbose", verbose, "Show the library's log");
    CLI11_PARSE(app, argc, argv);
    catch_interrupts();
    log_to_stderr(verbose);
    return action();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::run(argc, argv); }
