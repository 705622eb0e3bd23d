#include "sim/cluster.h"

#include "consensus/replica/codec.h"
#include "consensus/replica/replay.h"
#include "log/check.h"
#include "log/entry.h"
#include "sim/describe.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kTurnNs = 1'000;        // what a turn takes
constexpr std::uint64_t kUnnoticedNs = 200'000;  // until bytes in the ring are looked at, where nothing else comes
constexpr std::size_t kAlignment = 4096;

class CannotStart : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

using transport::LaneAddress;

std::string name_of(const LaneAddress& address) {
    return {reinterpret_cast<const char*>(address.bytes.data()), address.size};
}

std::span<std::byte> aligned(std::vector<std::byte>& storage, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return {storage.data() + (kAlignment - address % kAlignment) % kAlignment, bytes};
}

}  // namespace

Cluster::Node::Node(Cluster& owner, ReplicaId node_id, Incarnation disk_life, bool form)
    : cluster(owner),
      id(node_id),
      incarnation(disk_life),
      life(disk_life),
      fabric(owner.network_.attach(node_id, disk_life)),
      scratch_storage(owner.options_.ring_bytes + kAlignment),
      service(owner.options_.make_service ? owner.options_.make_service(node_id) : nullptr),
      queue(owner.options_.max_queued, std::size_t{1} << 20) {
    if (const std::uint64_t most = owner.options_.drift_ppm; most != 0)
        drift_ppm = static_cast<std::int64_t>(owner.network_.random().below(2 * most + 1)) -
                    static_cast<std::int64_t>(most);
    const core::CoreOptions core_options = owner.core_options(id, incarnation, form);
    const log::Ring ring(fabric->ring());
    std::optional<replica::Replayed> found;
    const auto renew = [this] {
        service = cluster.options_.make_service(id);
        return service.get();
    };
    const bool durable = core_options.durability != Durability::memory;
    snapshot_disk = durable ? owner.machines_.at(id)->snapshots : std::make_shared<log::SimDisk>(owner.draw());
    background = std::make_unique<SimBackground>(owner.network_, *snapshot_disk);
    snapshots = std::make_unique<replica::SnapshotStore>(*snapshot_disk, *background, [this] { fabric->wake(); });
    if (auto loaded = snapshots->load(!durable); !loaded)
        throw CannotStart(to_string(id) + " cannot come back: " + loaded.error().message());
    if (durable) {
        machine = owner.machines_.at(id).get();
        life = Incarnation{owner.network_.random().next() | 1};
        recorder = std::make_unique<Recorder>(owner.history_, owner.network_, id, life, service.get(), renew);
        copy_storage.resize(owner.options_.ring_bytes + kAlignment);
        const std::span<std::byte> copy = aligned(copy_storage, owner.options_.ring_bytes);
        worker = std::make_unique<SimWorker>(owner.network_, machine->disk, [this] { fabric->wake(); });
        storage = std::make_unique<replica::WalStorage>(ring, log::Ring(copy), *worker);
        auto replayed = replica::replay(machine->disk, identity(), ring, machine->voters, *snapshots, *recorder);
        if (!replayed) throw CannotStart(to_string(id) + " cannot come back: " + replayed.error().message());
        found = std::move(replayed).value();
        if (found) {
            found->core.formed = machine->formed;
            std::memcpy(copy.data(), ring.at({}), ring.bytes());
            storage->start(found->log);
        }
        wal_reader = std::make_unique<replica::WalReader>(*storage, machine->disk, *background,
                                                          [this] { fabric->wake(); });
    } else {
        recorder = std::make_unique<Recorder>(owner.history_, owner.network_, id, life, service.get(), renew);
    }
    driver = std::make_unique<replica::Driver>(
        core_options, owner.options_.snapshot_after, *fabric, aligned(scratch_storage, owner.options_.ring_bytes),
        replica::Driver::Parts{.cluster_id = identity().cluster_id,
                               .state_machine = *recorder,
                               .queue = queue,
                               .clock = *this,
                               .formation = *this,
                               .snapshots = *snapshots,
                               .storage = storage.get(),
                               .wal = wal_reader.get(),
                               .recovered = found ? &found->core : nullptr});
}

Result<void> Cluster::Node::keep(std::uint64_t genesis, const core::Config& voters, bool formed) {
    if (machine == nullptr) return {};
    machine->voters = voters;
    machine->formed = formed;
    if (formed) return {};
    log::HardState hard;
    hard.cluster_id = identity().cluster_id;
    hard.replica = id;
    hard.genesis = genesis;
    hard.ring_bytes = cluster.options_.ring_bytes;
    hard.incarnation = incarnation;
    hard.base = log::Point{{}, {}, genesis, {}, 0};
    if (auto created = log::create_log(machine->disk, hard); !created) return created;
    log::Ring ring(fabric->ring());
    auto recovered = log::recover(machine->disk, identity(), ring, {});
    if (!recovered) return std::move(recovered).error();
    storage->start(*recovered.value());
    return {};
}

core::Now Cluster::Node::now() {
    // Each replica's clocks have a zero of their own, and run at a speed of their own.
    const std::uint64_t skew = std::uint64_t{id.value} * 1'000'000'007;
    const std::uint64_t time_ns = cluster.network_.now_ns();
    const auto ahead = static_cast<std::uint64_t>(static_cast<std::int64_t>(time_ns / 1'000'000) * drift_ppm);
    return {time_ns + skew + ahead,
            time_ns + skew + ahead + 1'600'000'000'000'000'000 + static_cast<std::uint64_t>(wall_jump_ns)};
}

Cluster::Cluster(const Options& options) : options_(options), network_(options.seed, options.ring_bytes) {
    network_.on_arrival = [this](ReplicaId id, bool soon) {
        const auto found = nodes_.find(id);
        if (found == nodes_.end() || found->second->paused) return;
        plan_turn(*found->second, network_.now_ns() + (soon ? kTurnNs : kUnnoticedNs));
    };
    network_.on_landed = [this](ReplicaId at, ReplicaId writer, Incarnation writer_life) {
        landed(at, writer, writer_life);
    };
    network_.on_message = [this](ReplicaId from, ReplicaId to, std::span<const std::byte> message) {
        message_sent(from, to, message);
    };
    network_.on_connect = [this](ReplicaId holder, Incarnation, ReplicaId to, const LaneAddress& address) {
        history_.connected(holder, nodes_.at(holder)->life, to, name_of(address));
    };
}

Cluster::~Cluster() {
    network_.on_arrival = nullptr;
    network_.on_message = nullptr;
    nodes_.clear();
    lingering_.clear();
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
    options.durability = options_.durability;
    options.random_seed = network_.random().next();
    return options;
}

void Cluster::start(ReplicaId id) { start(id, true); }

void Cluster::restart(ReplicaId id) { start(id, false); }

void Cluster::start(ReplicaId id, bool form) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    // A process that has stopped by itself is ended before another one is started.
    std::erase_if(lingering_, [&](const auto& one) { return one.second.stopped && one.second.fabric->id() == id; });
    Incarnation incarnation{network_.random().next() | 1};
    if (options_.durability != Durability::memory) {
        auto& machine = machines_[id];
        // Behind memory that is gone, what is on disk is nothing to come back with (S12): the new life's is empty.
        if (!machine || options_.durability == Durability::persist_async)
            machine = std::make_unique<Machine>(draw());
        auto hard = log::read_hard_state(machine->disk);
        if (hard && hard.value()) incarnation = hard.value()->state.incarnation;
    }
    std::unique_ptr<Node> node;
    try {
        node = std::make_unique<Node>(*this, id, incarnation, form);
    } catch (const CannotStart& found) {
        // A disk that fails is no reason to be wrong; one that did not has no reason to be refused. What has rotted is
        // repaired (S14).
        const Machine& machine = *machines_.at(id);
        if (!machine.disk.failed() && !machine.snapshots->failed()) throw Violation(found.what());
        return tell(found.what());
    }
    plan_turn(*(nodes_[id] = std::move(node)), network_.now_ns() + kTurnNs);
}

void Cluster::lose_disk(ReplicaId id) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    machines_.erase(id);
}

void Cluster::put_disk_aside(ReplicaId id) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    const auto found = machines_.find(id);
    if (found == machines_.end()) return;
    aside_[id].push_back(std::move(found->second));
    machines_.erase(found);
}

void Cluster::put_disk_back(ReplicaId id, std::size_t which) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    auto& aside = aside_[id];
    std::unique_ptr<Machine> back = std::move(aside.at(which));
    aside.erase(aside.begin() + static_cast<std::ptrdiff_t>(which));
    put_disk_aside(id);
    machines_[id] = std::move(back);
}

std::vector<Incarnation> Cluster::disks_aside(ReplicaId id) {
    std::vector<Incarnation> lives;
    for (const auto& machine : aside_[id]) {
        auto hard = log::read_hard_state(machine->disk);
        lives.push_back(hard && hard.value() ? hard.value()->state.incarnation : Incarnation{});
    }
    return lives;
}

void Cluster::start_all() {
    for (std::size_t i = 1; i <= options_.replicas; ++i) start(ReplicaId{static_cast<std::uint8_t>(i)});
}

void Cluster::resume(ReplicaId id) {
    Node& node = *nodes_.at(id);
    node.paused = false;
    plan_turn(node, network_.now_ns() + kTurnNs);
}

void Cluster::plan_turn(Node& node, std::uint64_t at_ns) {
    at_ns = std::max(at_ns, node.busy_until_ns);
    if (node.turn_at_ns != 0 && node.turn_at_ns <= at_ns) return;
    node.turn_at_ns = at_ns;
    network_.at(at_ns, [this, id = node.id, life = node.life, plan = ++node.plan] {
        const auto found = nodes_.find(id);
        if (found != nodes_.end() && found->second->life == life && found->second->plan == plan)
            turn(*found->second);
    });
}

void Cluster::turn(Node& node) {
    node.turn_at_ns = 0;
    ++turns_;
    const auto turned = node.driver->turn(std::chrono::nanoseconds{0});
    if (!turned) {
        // S13: it stops for good; what its disk holds may be started again.
        tell(to_string(node.id) + " stops: " + turned.error().message());
        return stop_for_good(node);
    }
    check_node(node);
    const transport::sim::Faults& faults = network_.faults();
    if (node.batches != node.recorder->batches()) {
        node.batches = node.recorder->batches();
        if (faults.apply_slow_chance != 0 && network_.random().below(1'000'000) < faults.apply_slow_chance)
            node.busy_until_ns = network_.now_ns() + network_.random().below(faults.apply_slow_ns + 1);
    }
    const auto patience = static_cast<std::uint64_t>(node.driver->patience().count());
    plan_turn(node, network_.now_ns() + std::max(patience, kTurnNs));
}

void Cluster::check_node(Node& node) {
    const core::Core& core = node.driver->core();
    history_.committed(node.id, node.life, core.commit().index, core.commit().checksum);
    history_.configured(node.id, core.commit().index, core.committed_config().config);
    const Role role = core.role();
    if (role == Role::leader && node.counted_at != core.end()) {  // it reads all that is not committed
        node.counted_at = core.end();
        history_.counts_by(node.id, core.config(), core.newest_config());
    }
    if (role == Role::leader) history_.leads(node.id, core.promised());
    Position& commit = commits_[{node.id, node.incarnation}];
    commit = std::max(commit, core.commit().position);
    if (role == Role::leader) check_low_mark(node);
    check_bounds(node);
    if (role == node.role) return;
    node.role = role;
    tell(to_string(node.id) + " is " + lockstep::to_string(role) + " in ballot " + to_string(core.promised()));
}

// A leader gives its ring up, to write on, only where a majority needs no repair from it. What it lacks from the start
// is another matter.
void Cluster::check_low_mark(Node& node) {
    const core::Core& core = node.driver->core();
    const bool rose = node.led == core.promised() && core.low_mark() > node.led_low_mark;
    node.led = core.promised();
    node.led_low_mark = core.low_mark();
    if (!rose) return;
    std::vector<Position> commits;
    for (const core::Voter& voter : core.config().voters.all())
        commits.push_back(commits_[{voter.id, voter.incarnation}]);
    history_.gave_up(node.id, core.low_mark(), commits);
}

void Cluster::check_bounds(Node& node) {
    history_.holds(node.id, "lanes", node.fabric->lanes(), options_.replicas - 1);
    // A batch is under way while the next one gathers.
    history_.holds(node.id, "requests in the queue", node.queue.waiting(), 2 * options_.max_queued);
    history_.holds(node.id, "reads that wait", node.driver->waiting_reads(), options_.max_queued);
    history_.holds(node.id, "proposals that wait", node.driver->waiting_proposals(),
                   options_.ring_bytes / log::kEntryAlignment);
}

void Cluster::message_sent(ReplicaId from, ReplicaId to, std::span<const std::byte> message) {
    if (replica::is_transfer(message)) {
        if (const auto transfer = replica::decode_transfer(message); trace && transfer)
            tell(to_string(from) + " to " + to_string(to) + ": " + describe_transfer(transfer.value()));
        return;
    }
    history_.sent(from, network_.now_ns());
    const auto decoded = replica::decode(message);
    if (trace)
        tell(to_string(from) + " to " + to_string(to) + ": " +
             (decoded ? describe_message(decoded.value()) : decoded.error().message()));
    const auto sender = nodes_.find(from);
    if (!decoded || sender == nodes_.end()) return;
    const Incarnation life = sender->second->life;
    if (const auto* asks = std::get_if<core::Prepare>(&decoded.value()))
        history_.asked(from, life, to, asks->open_number);
    if (const auto* answer = std::get_if<core::Promise>(&decoded.value())) {
        check_promise(*sender->second, answer->ballot);
        history_.answered(from, life, answer->ballot, answer->open_number, name_of(answer->lane));
    }
}

// S1: whatever becomes of its machine now, it will know what it has promised.
void Cluster::check_promise(const Node& node, Ballot promised) const {
    if (!durable()) return;
    const std::vector<std::byte> file = node.machine->disk.durable_contents(log::kHardStateName);
    std::optional<log::NumberedHardState> newest;
    for (std::uint64_t slot = 0; slot < 2 && file.size() >= log::kHardStateBytes; ++slot) {
        const auto state = log::hard_state_of(std::span(file).subspan(log::hard_state_offset(slot), log::kBlockBytes));
        if (state && (!newest || state->sequence > newest->sequence)) newest = state;
    }
    if (newest && newest->state.promised >= promised) return;
    throw Violation(to_string(node.id) + " answers with a promise of " + to_string(promised) + ", its disk has " +
                    (newest ? to_string(newest->state.promised) : "none") + " (S1)");
}

// A ring is written by the leader, or the candidate, of the ballot that its owner has promised.
void Cluster::landed(ReplicaId at, ReplicaId writer, Incarnation writer_life) {
    const auto found = nodes_.find(at);
    if (found == nodes_.end()) {
        for (const auto& [number, one] : lingering_)
            if (one.stopped && one.fabric->id() == at)
                throw Violation("the ring of " + to_string(at) + ", which has stopped, was written by " +
                                to_string(writer) + " (S13)");
        return;
    }
    const Node& node = *found->second;
    history_.wrote(node.id, node.life, node.driver->core().promised(), writer, writer_life);
}

void Cluster::tell(const std::string& text) const {
    if (trace) trace(text);
}

void Cluster::run_for(std::uint64_t ns) {
    const std::uint64_t end_ns = network_.now_ns() + ns;
    while (network_.run_one(end_ns)) {
    }
}

bool Cluster::propose(ReplicaId id, std::size_t bytes) {
    const std::uint64_t number = next_number();
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
        const core::ConfigAt config = core.newest_config();
        text += ", config of " + to_string(config.at) + (config == core.committed_config() ? "" : ", not committed,");
        for (const core::Voter& voter : config.config.voters.all())
            text += " " + to_string(voter.id) + "/" + to_string(voter.incarnation).substr(0, 4);
        text += ", is " + to_string(node->incarnation).substr(0, 4);
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
