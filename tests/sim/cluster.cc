#include "tests/sim/cluster.h"

#include "log/check.h"

#include <algorithm>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kTurnNs = 1'000;        // what a turn takes
constexpr std::uint64_t kUnnoticedNs = 200'000;  // until bytes in the ring are looked at, where nothing else comes
constexpr std::size_t kAlignment = 4096;

std::span<std::byte> aligned(std::vector<std::byte>& storage, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return {storage.data() + (kAlignment - address % kAlignment) % kAlignment, bytes};
}

}  // namespace

void Recorder::apply(std::span<const Entry> batch, Replies& replies) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const auto* text = reinterpret_cast<const char*>(batch[i].command.data());
        std::string command(text, batch[i].command.size());
        command.resize(command.find(' ') == std::string::npos ? command.size() : command.find(' '));
        replies.set(i, batch[i].command);
        history_.applied(id_, incarnation_, batch[i].index, command);
        commands_[batch[i].index] = std::move(command);
    }
}

Cluster::Node::Node(Cluster& owner, ReplicaId node_id, Incarnation life, bool form)
    : cluster(owner),
      id(node_id),
      incarnation(life),
      fabric(owner.network_.attach(node_id, life)),
      scratch_storage(owner.options_.ring_bytes + kAlignment),
      recorder(std::make_unique<Recorder>(owner.history_, node_id, life)),
      queue(owner.options_.max_queued, std::size_t{1} << 20) {
    driver = std::make_unique<replica::Driver>(owner.core_options(id, life, form), *fabric,
                                               aligned(scratch_storage, owner.options_.ring_bytes), *recorder, queue,
                                               *this, *this);
}

core::Now Cluster::Node::now() {
    // Each replica's clocks have a zero of their own.
    const std::uint64_t skew = std::uint64_t{id.value} * 1'000'000'007;
    return {cluster.network_.now_ns() + skew, cluster.network_.now_ns() + 1'600'000'000'000'000'000 + skew};
}

Cluster::Cluster(const Options& options) : options_(options), network_(options.seed, options.ring_bytes) {
    network_.on_arrival = [this](ReplicaId id, bool soon) {
        const auto found = nodes_.find(id);
        if (found == nodes_.end() || found->second->paused) return;
        plan_turn(*found->second, network_.now_ns() + (soon ? kTurnNs : kUnnoticedNs));
    };
}

Cluster::~Cluster() {
    network_.on_arrival = nullptr;
    nodes_.clear();
}

core::CoreOptions Cluster::core_options(ReplicaId id, Incarnation incarnation, bool form) {
    core::CoreOptions options;
    options.id = id;
    options.incarnation = incarnation;
    for (std::size_t i = 0; i < options_.replicas; ++i)
        options.members[i] = ReplicaId{static_cast<std::uint8_t>(i + 1)};
    options.member_count = options_.replicas;
    options.form = form;
    options.election_timeout_ns = options_.election_timeout_ns;
    options.heartbeat_ns = options_.heartbeat_ns;
    options.random_seed = network_.random().next();
    return options;
}

void Cluster::start(ReplicaId id) { start(id, true); }

void Cluster::restart(ReplicaId id) { start(id, false); }

void Cluster::start(ReplicaId id, bool form) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    const Incarnation incarnation{network_.random().next() | 1};
    auto& node = nodes_[id] = std::make_unique<Node>(*this, id, incarnation, form);
    plan_turn(*node, network_.now_ns() + kTurnNs);
}

void Cluster::start_all() {
    for (std::size_t i = 1; i <= options_.replicas; ++i) start(ReplicaId{static_cast<std::uint8_t>(i)});
}

void Cluster::crash(ReplicaId id) {
    // What its clients wait for never gets an answer: for them it is unknown.
    Node& node = *nodes_.at(id);
    node.driver->stop();
    nodes_.erase(id);
}

void Cluster::pause(ReplicaId id) {
    nodes_.at(id)->paused = true;
    ++nodes_.at(id)->plan;
    nodes_.at(id)->turn_at_ns = 0;
}

void Cluster::resume(ReplicaId id) {
    Node& node = *nodes_.at(id);
    node.paused = false;
    plan_turn(node, network_.now_ns() + kTurnNs);
}

void Cluster::plan_turn(Node& node, std::uint64_t at_ns) {
    if (node.turn_at_ns != 0 && node.turn_at_ns <= at_ns) return;
    node.turn_at_ns = at_ns;
    network_.at(at_ns, [this, id = node.id, life = node.incarnation, plan = ++node.plan] {
        const auto found = nodes_.find(id);
        if (found != nodes_.end() && found->second->incarnation == life && found->second->plan == plan)
            turn(*found->second);
    });
}

void Cluster::turn(Node& node) {
    node.turn_at_ns = 0;
    const auto turned = node.driver->turn(std::chrono::nanoseconds{0});
    LOCKSTEP_CHECK(turned.ok());
    const core::Core& core = node.driver->core();
    history_.committed(node.id, node.incarnation, core.commit().index, core.commit().checksum);
    if (core.role() == Role::leader) history_.leads(node.id, core.promised());
    const auto patience = static_cast<std::uint64_t>(node.driver->patience().count());
    plan_turn(node, network_.now_ns() + std::max(patience, kTurnNs));
}

void Cluster::run_for(std::uint64_t ns) {
    const std::uint64_t end_ns = network_.now_ns() + ns;
    while (network_.run_one(end_ns)) {
    }
}

bool Cluster::propose(ReplicaId id, std::size_t bytes) {
    const std::uint64_t number = ++proposals_;
    std::string command = std::to_string(number);
    if (bytes > command.size()) command.resize(bytes, ' ');
    history_.proposed(number);
    Replica::Done done = [this, number](const Outcome& outcome) { history_.ended(number, outcome); };
    if (propose(id, command, done)) return true;
    done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
    return false;
}

bool Cluster::propose(ReplicaId id, std::string_view command, Replica::Done done) {
    Node& node = *nodes_.at(id);
    const auto bytes = std::as_bytes(std::span(command));
    if (node.driver->propose_at_once(bytes, done)) return true;
    const auto pushed = node.queue.push_proposal(bytes, done);
    if (pushed != replica::RequestQueue::Pushed::taken) return false;
    node.fabric->wake();
    return true;
}

void Cluster::read(ReplicaId id) {
    const Index must_see = history_.read_began();
    Replica::Done done = [this, must_see](const Outcome& outcome) { history_.read_ended(must_see, outcome); };
    if (!read(id, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
}

bool Cluster::read(ReplicaId id, Replica::Done done) {
    Node& node = *nodes_.at(id);
    if (node.queue.push_read(done) != replica::RequestQueue::Pushed::taken) return false;
    node.fabric->wake();
    return true;
}

std::optional<ReplicaId> Cluster::leader() const {
    std::optional<ReplicaId> best;
    for (const auto& [id, node] : nodes_) {
        const core::Core& core = node->driver->core();
        if (core.role() == Role::leader && (!best || core.promised() > nodes_.at(*best)->driver->core().promised()))
            best = id;
    }
    return best;
}

std::vector<ReplicaId> Cluster::ids() const {
    std::vector<ReplicaId> ids;
    for (const auto& [id, unused] : nodes_) ids.push_back(id);
    return ids;
}

std::string Cluster::describe() const {
    std::string text;
    for (const auto& [id, node] : nodes_) {
        const Status status = node->driver->status();
        const core::Core& core = node->driver->core();
        text += to_string(id) + ": " + lockstep::to_string(status.role) + ", ballot " + to_string(status.ballot) +
                ", leader " + to_string(status.leader) + ", applied " + to_string(status.applied) + " of " +
                to_string(status.committed) + " at " + to_string(core.commit().position) + ", end " +
                to_string(status.end) + ", low mark " + to_string(core.low_mark());
        if (node->paused) text += ", paused";
        if (!status.note.empty()) text += ", " + status.note;
        for (const PeerStatus& peer : status.peers)
            text += "; " + to_string(peer.id) + " " + peer.path + " " + peer.lane + " landed " +
                    to_string(peer.landed) + " consumed " + to_string(peer.consumed);
        text += "\n";
    }
    return text;
}

}  // namespace lockstep::sim
