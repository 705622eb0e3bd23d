#include "transport/sim/network.h"

#include "log/check.h"
#include "transport/sim/fabric.h"

#include <algorithm>

namespace lockstep::transport::sim {

namespace {

// How long a connection over a cut link takes to be given up, and a node to find a peer that is (again) there.
constexpr std::uint64_t kGiveUpNs = 100'000'000;
constexpr std::uint64_t kConnectNs = 1'000'000;

}  // namespace

std::unique_ptr<SimFabric> Network::attach(ReplicaId id, Incarnation incarnation) {
    LOCKSTEP_CHECK(!nodes_.contains(id));
    auto fabric = std::make_unique<SimFabric>(*this, id, incarnation);
    nodes_[id] = fabric.get();
    for (const auto& [other, unused] : nodes_)
        if (other != id) heal(other, id), heal(id, other);
    return fabric;
}

void Network::detach(ReplicaId id, std::uint64_t life) {
    nodes_.erase(id);
    announce_end(id, life);
}

void Network::announce_end(ReplicaId id, std::uint64_t life) {
    for (const auto& [other, unused] : nodes_) {
        if (other == id || is_cut(id, other)) continue;
        at(now_ns_ + latency(), [this, peer = other, id, life] {
            if (SimFabric* at_peer = node(peer); at_peer != nullptr) at_peer->lose_life(id, life);
        });
    }
}

SimFabric* Network::node(ReplicaId id) {
    const auto found = nodes_.find(id);
    return found == nodes_.end() ? nullptr : found->second;
}

bool Network::run_one(std::uint64_t until_ns) {
    if (due_.empty() || due_.top().time_ns > until_ns) {
        now_ns_ = std::max(now_ns_, until_ns);
        return false;
    }
    auto what = std::move(const_cast<Due&>(due_.top()).what);
    now_ns_ = due_.top().time_ns;
    due_.pop();
    what();
    return true;
}

void Network::at(std::uint64_t time_ns, std::function<void()> what) {
    due_.push({std::max(time_ns, now_ns_), ++order_, std::move(what)});
}

std::uint64_t Network::latency() {
    std::uint64_t ns = faults_.latency_min_ns +
                       random_.below(faults_.latency_max_ns - faults_.latency_min_ns + 1);
    if (chance(faults_.slow_chance)) ns += random_.below(faults_.slow_ns + 1);
    return ns;
}

void Network::deliver(Kind kind, ReplicaId from, ReplicaId to, std::uint64_t earliest_ns,
                      std::function<void()> arrive, std::function<void()> lost) {
    if (is_cut(from, to)) {
        if (lost) lost();
        return;
    }
    if (const auto held = held_.find({kind, {from, to}}); held != held_.end()) {
        held->second.push_back(std::move(arrive));
        return;
    }
    at(earliest_ns, [this, from, to, arrive = std::move(arrive), lost = std::move(lost)] {
        if (!is_cut(from, to)) arrive();
        else if (lost) lost();
    });
}

void Network::cut(ReplicaId from, ReplicaId to) {
    cuts_.insert({from, to});
    at(now_ns_ + kGiveUpNs, [this, from, to] {
        if (!is_cut(from, to)) return;
        if (SimFabric* a = node(from); a != nullptr) a->lose(to, false);
        if (SimFabric* b = node(to); b != nullptr) b->lose(from, false);
    });
}

void Network::heal(ReplicaId from, ReplicaId to) {
    cuts_.erase({from, to});
    at(now_ns_ + kConnectNs + latency(), [this, from, to] {
        if (is_cut(from, to) || is_cut(to, from)) return;
        SimFabric* a = node(from);
        SimFabric* b = node(to);
        if (a == nullptr || b == nullptr) return;
        a->connect_to(*b);
        b->connect_to(*a);
    });
}

void Network::heal_all() {
    const auto cuts = cuts_;
    for (const auto& [from, to] : cuts) heal(from, to);
}

void Network::hold(Kind kind, ReplicaId from, ReplicaId to) { held_[{kind, {from, to}}]; }

void Network::release(Kind kind, ReplicaId from, ReplicaId to) {
    const auto held = held_.find({kind, {from, to}});
    if (held == held_.end()) return;
    const auto arrivals = std::move(held->second);
    held_.erase(held);
    std::uint64_t time_ns = now_ns_;
    for (const auto& arrive : arrivals) at(++time_ns, arrive);
}

void Network::drop_held(Kind kind, ReplicaId from, ReplicaId to) {
    if (const auto held = held_.find({kind, {from, to}}); held != held_.end()) held->second.clear();
}

void Network::repeat_held(Kind kind, ReplicaId from, ReplicaId to) {
    const auto held = held_.find({kind, {from, to}});
    if (held == held_.end()) return;
    std::uint64_t time_ns = now_ns_;
    for (const auto& arrive : held->second) at(++time_ns, arrive);
}

void Network::cut_next_write(ReplicaId from, ReplicaId to, std::uint64_t bytes, bool breaks) {
    write_cuts_[{from, to}] = {bytes, breaks};
}

std::optional<Network::WriteCut> Network::take_write_cut(ReplicaId from, ReplicaId to) {
    const auto found = write_cuts_.find({from, to});
    if (found == write_cuts_.end()) return std::nullopt;
    const WriteCut cut = found->second;
    write_cuts_.erase(found);
    return cut;
}

std::uint64_t Network::take_read_tear(ReplicaId reader, ReplicaId of) {
    const auto found = read_tears_.find({reader, of});
    if (found == read_tears_.end()) return UINT64_MAX;
    const std::uint64_t bytes = found->second;
    read_tears_.erase(found);
    return bytes;
}

}  // namespace lockstep::transport::sim
