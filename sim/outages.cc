// What happens to a cluster's processes and machines: they end, hang and pause, power is lost, disks hang and rot.
#include "log/check.h"
#include "sim/cluster.h"

#include <algorithm>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kStoppedNs = 50 * kMs;  // until a process that has stopped ends

}  // namespace

void Cluster::crash(ReplicaId id, bool power) {
    // What its clients wait for never gets an answer: for them it is unknown.
    Node& node = *nodes_.at(id);
    node.driver->stop();
    nodes_.erase(id);
    close_files(id, power);
}

void Cluster::close_files(ReplicaId id, bool power) {
    const auto machine = machines_.find(id);
    if (machine == machines_.end()) return;
    for (log::SimDisk* disk : {&machine->second->disk, machine->second->snapshots.get()}) {
        if (power) {
            disk->crash();
            continue;
        }
        // The system writes on what it was given, and closes the files.
        for (log::FileHandle file = 0; file < log::kMaxOpenFiles; ++file)
            LOCKSTEP_CHECK(disk->perform(log::DiskOperation::close(file)).ok());
    }
}

void Cluster::crash_lingering(ReplicaId id, std::uint64_t ns, bool heard) {
    Node& node = *nodes_.at(id);
    node.fabric->outlive_process(heard);
    node.driver->stop();
    linger(node, ns, false);
}

// S13: a process that has stopped by itself is still there for a while, and its memory with it: fenced.
void Cluster::stop_for_good(Node& node) {
    node.driver->stop();
    node.fabric->outlive_process(false);
    linger(node, kStoppedNs, true);
}

void Cluster::linger(Node& node, std::uint64_t ns, bool stopped) {
    const ReplicaId id = node.id;
    node.driver.reset();
    const std::uint64_t number = next_number();
    lingering_[number] = {std::move(node.fabric), stopped};
    nodes_.erase(id);
    close_files(id, false);
    network_.at(network_.now_ns() + ns, [this, number] { lingering_.erase(number); });
}

bool Cluster::lingers(ReplicaId id) const {
    return std::ranges::any_of(lingering_, [&](const auto& one) { return one.second.fabric->id() == id; });
}

void Cluster::black_out() {
    for (const ReplicaId id : ids()) crash(id);
    lingering_.clear();
    for (const auto& [id, unused] : machines_) close_files(id, true);
}

void Cluster::hang_disks(ReplicaId id, std::uint64_t ns) {
    Machine& machine = *machines_.at(id);
    machine.hangs_until_ns = std::max(machine.hangs_until_ns, network_.now_ns() + ns);
    const auto hang = [](Machine& one, bool hung) {
        one.disk.hang(hung);
        one.snapshots->hang(hung);
    };
    hang(machine, true);
    network_.at(machine.hangs_until_ns, [this, hang, &machine] {
        if (network_.now_ns() >= machine.hangs_until_ns) hang(machine, false);
    });
}

// Whether bits have turned over there that its replica has not seen yet, or not made up for.
bool Cluster::rotten(ReplicaId id, Machine& machine) {
    const auto node = nodes_.find(id);
    if (machine.rotten && node != nodes_.end() && node->second->machine == &machine &&
        node->second->driver->core().loss() == core::Loss::none &&
        node->second->storage->wal().kept().owed.damage == log::Damage::none)
        machine.rotten = false;
    return machine.rotten;
}

bool Cluster::rot(ReplicaId id, std::uint64_t where) {
    const auto machine = machines_.find(id);
    if (machine == machines_.end() || nodes_.contains(id)) return false;
    std::size_t others = 0;
    for (const auto& [other, one] : machines_)
        if (other != id && rotten(other, *one)) ++others;
    if (others + 1 > (options_.replicas - 1) / 2) return false;
    std::vector<log::FileInfo> segments = machine->second->disk.list().value();
    std::erase_if(segments, [](const log::FileInfo& file) { return !log::parse_segment_name(file.name); });
    if (segments.empty()) return false;
    const log::FileInfo& file = segments[where % segments.size()];
    machine->second->rotten = true;
    machine->second->disk.flip_bit(file.name, where / segments.size() % file.bytes, where % 7);
    return true;
}

void Cluster::calm_disks() {
    for (const auto& [id, machine] : machines_) {
        machine->hangs_until_ns = network_.now_ns();
        for (log::SimDisk* disk : {&machine->disk, machine->snapshots.get()}) {
            disk->hang(false);
            disk->forget_planned();
        }
    }
}

void Cluster::hang(ReplicaId id, std::uint64_t ns) {
    Node& node = *nodes_.at(id);
    node.busy_until_ns = std::max(node.busy_until_ns, network_.now_ns() + ns);
    if (node.paused) return;
    node.turn_at_ns = 0;
    plan_turn(node, node.busy_until_ns);
}

std::uint64_t Cluster::busy_ns() const {
    std::uint64_t until_ns = network_.now_ns();
    for (const auto& [id, node] : nodes_) until_ns = std::max(until_ns, node->busy_until_ns);
    return until_ns - network_.now_ns();
}

void Cluster::pause(ReplicaId id) {
    nodes_.at(id)->paused = true;
    ++nodes_.at(id)->plan;
    nodes_.at(id)->turn_at_ns = 0;
}

}  // namespace lockstep::sim
