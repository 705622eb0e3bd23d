#include "tools/bench/cluster.h"

#include "tools/bench/clock.h"
#include "tools/bench/progress.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

namespace lockstep::bench {
namespace {

constexpr int kStartAttempts = 5;
// A busy machine must not cost the leader its place in the middle of a measurement: time-outs are not what is measured.
constexpr std::uint32_t kPatientTimeoutMs = 3'000;

class EmptyView final : public SnapshotView {
 public:
    Result<void> write(SnapshotSink&) override { return {}; }
};

std::uint64_t random_number() {
    std::random_device source;
    return std::max<std::uint64_t>(1, std::uint64_t{source()} << 32 | source());
}

}  // namespace

std::unique_ptr<SnapshotView> Nothing::snapshot() { return std::make_unique<EmptyView>(); }

const char* to_string(Polling polling) {
    switch (polling) {
        case Polling::blocking: return "blocking";
        case Polling::adaptive: return "adaptive";
        case Polling::spin: return "spin";
    }
    return "?";
}

void log_to_stderr(bool verbose) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("lockstep-bench"));
    spdlog::set_level(verbose ? spdlog::level::debug : spdlog::level::err);  // the library's lines too
}

ClusterSpec ClusterSpec::make(const Ports& ports, const TemporaryFolder& folder, Polling polling) {
    return make(ports, folder, polling, "tcp", std::vector<std::string>(kReplicas, "127.0.0.1"));
}

ClusterSpec ClusterSpec::make(const Ports& ports, const TemporaryFolder& folder, Polling polling,
                              const std::string& transport, const std::vector<std::string>& hosts) {
    ClusterSpec spec;
    spec.transport = transport;
    spec.hosts = hosts;
    spec.cluster_id = random_number();
    spec.ports = ports.numbers();
    spec.folder = folder.path();
    spec.polling = polling;
    return spec;
}

Options ClusterSpec::options(std::uint8_t id) const {
    Options options;
    options.cluster_id = cluster_id;
    options.id = {id};
    for (std::size_t i = 0; i < ports.size(); ++i) {
        Member member;
        member.id = {static_cast<std::uint8_t>(i + 1)};
        member.address = hosts[i] + ":" + std::to_string(ports[i]);
        member.priority = static_cast<std::uint32_t>(ports.size() - i);
        options.members.push_back(member);
    }
    options.data_folder = folder + "/" + std::to_string(id);
    options.form = true;
    options.election_timeout_ms = election_timeout_ms;
    options.heartbeat_ms = heartbeat_ms;
    options.polling = polling;
    options.durability = durability;
    options.transport = transport == "rdma" ? Transport::rdma : Transport::tcp;
    return options;
}

std::vector<std::string> ClusterSpec::arguments(std::uint8_t id) const {
    std::string all_ports, all_hosts;
    for (const std::uint16_t port : ports) all_ports += (all_ports.empty() ? "" : ",") + std::to_string(port);
    for (const std::string& host : hosts) all_hosts += (all_hosts.empty() ? "" : ",") + host;
    return {"--id", std::to_string(id),
            "--cluster-id", std::to_string(cluster_id),
            "--transport", transport,
            "--hosts", all_hosts,
            "--ports", all_ports,
            "--folder", folder,
            "--polling", to_string(polling),
            "--durability", lockstep::to_string(durability),
            "--election-timeout-ms", std::to_string(election_timeout_ms),
            "--heartbeat-ms", std::to_string(heartbeat_ms)};
}

int run_replica(const ClusterSpec& spec, std::uint8_t id) {
    Nothing state_machine;
    auto replica = Replica::open(spec.options(id), state_machine);
    if (!replica) {
        tell(replica.error().message());
        return 1;
    }
    while (true) ::pause();
}

Result<void> await_lead(const Replica& replica, std::uint64_t deadline_ns) {
    while (true) {
        const Status status = replica.status();
        if (status.role == Role::stopped) return Error("replica 1 has stopped: " + status.note);
        if (status.leader && status.leader != status.id)
            return Error("replica " + std::to_string(status.leader.value) + " leads, not replica 1");
        const bool all = std::ranges::all_of(status.peers, [](const PeerStatus& peer) {
            return peer.lane == "streaming";
        });
        if (status.role == Role::leader && status.committed.value > 0 && all) return {};
        if (auto going = go_on(deadline_ns, "starting three replicas"); !going) return going;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

Result<Cluster> Cluster::start_once(const ClusterKind& kind, StateMachine& state_machine, std::uint64_t deadline_ns) {
    auto ports = Ports::reserve(kReplicas);
    if (!ports) return std::move(ports).error();
    auto folder = TemporaryFolder::make(kind.folder);
    if (!folder) return std::move(folder).error();
    Cluster cluster(std::move(ports).value(), std::move(folder).value());
    ClusterSpec spec = ClusterSpec::make(cluster.ports_, cluster.folder_, kind.polling, kind.transport, kind.hosts);
    spec.durability = kind.durability;
    spec.election_timeout_ms = kPatientTimeoutMs;
    for (std::uint8_t id = 2; id <= kReplicas; ++id) {
        std::vector<std::string> words = {"replica"};
        std::ranges::copy(spec.arguments(id), std::back_inserter(words));
        auto follower = Child::again(words);
        if (!follower) return std::move(follower).error();
        cluster.followers_.push_back(std::move(follower).value());
    }
    Options options = spec.options(1);
    options.snapshot_bytes = kind.snapshot_bytes;
    auto leader = Replica::open(options, state_machine);
    if (!leader) return std::move(leader).error();
    cluster.leader_ = std::move(leader).value();
    if (auto leads = await_lead(*cluster.leader_, deadline_ns); !leads) return std::move(leads).error();
    return cluster;
}

Result<Cluster> Cluster::start(const ClusterKind& kind, StateMachine& state_machine, std::uint64_t deadline_ns) {
    for (int attempt = 1;; ++attempt) {
        const std::uint64_t limit_ns = now_ns() + kStartLimitMs * kMillisecond;
        auto cluster = start_once(kind, state_machine, std::min(deadline_ns, limit_ns));
        if (cluster || interrupted()) return cluster;
        if (attempt == kStartAttempts || now_ns() >= deadline_ns)
            return std::move(cluster).error().within("cannot start three replicas");
        tell("tries again to start three replicas: " + cluster.error().message());
    }
}

}  // namespace lockstep::bench
