#include "transport/sim/fabric.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::transport::sim {

namespace {

constexpr std::size_t kAlignment = 4096;

}  // namespace

SimFabric::SimFabric(Network& network, ReplicaId id, Incarnation incarnation)
    : network_(network),
      id_(id),
      incarnation_(incarnation),
      life_(network.fresh_number()),
      storage_(network.ring_bytes_ + kProbeLineBytes + kAlignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    memory_ = storage_.data() + (kAlignment - address % kAlignment) % kAlignment;
}

SimFabric::~SimFabric() {
    for (const auto& [unused, lane] : lanes_) lane->ended = true;
    network_.detach(id_, life_);
}

// Its memory and its device go on for a while: what it posted is sent, what arrives lands, reads are answered. Nothing
// is fenced, and nobody hears of anything.
void SimFabric::outlive_process(bool heard) {
    dead_ = true;
    events_.clear();
    messages_.clear();
    if (heard) network_.announce_end(id_, life_);
}

// -- Reads, reports, messages ----------------------------------------------------------------------------------------

void SimFabric::read_board(ReplicaId peer) {
    if (!up_.contains(peer) || !board_asked_.insert(peer).second) return;
    const Incarnation theirs = up_[peer];
    const std::uint64_t there_ns = network_.now_ns() + network_.latency();
    network_.at(there_ns + kRetriesNs, [network = &network_, me = id_, mine = life_, peer] {
        // Lost on a link that was cut for a while: the connection would have tried again by itself.
        SimFabric* asker = network->node(me);
        if (asker != nullptr && asker->life_ == mine) asker->board_asked_.erase(peer);
    });
    network_.deliver(Network::Kind::read, id_, peer, there_ns, [network = &network_, me = id_, mine = life_,
                                                                peer, theirs] {
        SimFabric* target = network->node(peer);
        if (target == nullptr || target->incarnation_ != theirs) return;
        auto answer = [network, me, mine, peer, theirs](Board board) {
            network->deliver(Network::Kind::read, peer, me, network->now_ns() + network->latency(),
                             [network, me, mine, peer, theirs, board] {
                                 SimFabric* asker = network->node(me);
                                 if (asker == nullptr || asker->life_ != mine) return;
                                 asker->board_asked_.erase(peer);
                                 const auto up = asker->up_.find(peer);
                                 if (up == asker->up_.end() || up->second != theirs) return;
                                 Event event;
                                 event.kind = EventKind::board;
                                 event.peer = peer;
                                 event.board = board;
                                 asker->push(std::move(event));
                             });
        };
        if (!network->chance(network->faults_.read_torn_chance)) return answer(target->board_);
        // F6: the second half is read later than the first.
        network->at(network->now_ns() + network->latency(), [network, peer, theirs, first = target->board_, answer] {
            const SimFabric* still = network->node(peer);
            if (still == nullptr || still->incarnation_ != theirs) return;
            Board board = first;
            constexpr std::size_t kHalf = sizeof(Board) / 2;
            std::memcpy(reinterpret_cast<std::byte*>(&board) + kHalf,
                        reinterpret_cast<const std::byte*>(&still->board_) + kHalf, sizeof(Board) - kHalf);
            answer(board);
        });
    });
}

void SimFabric::read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) {
    LOCKSTEP_CHECK_OP(into.size(), <=, kMaxTransferBytes);
    const auto up = up_.find(peer);
    const auto finish = [this, read, peer](bool ok) {
        Event event;
        event.kind = EventKind::ring_read;
        event.peer = peer;
        event.read = read;
        event.ok = ok;
        push(std::move(event));
    };
    if (up == up_.end() || network_.chance(network_.faults_.read_fails_chance) || network_.is_cut(id_, peer) ||
        network_.is_cut(peer, id_)) {
        network_.at(network_.now_ns() + network_.latency(),
                    [network = &network_, me = id_, mine = life_, finish] {
                        const SimFabric* asker = network->node(me);
                        if (asker != nullptr && asker->life_ == mine) finish(false);
                    });
        return;
    }
    // Read in two parts at two times where it is torn.
    const bool torn = network_.chance(network_.faults_.read_torn_chance);
    const std::uint64_t first = torn ? network_.random_.below(into.size() / 8 + 1) * 8 : into.size();
    const std::uint64_t offset = at.value & (network_.ring_bytes_ - 1);
    std::uint64_t intact = network_.take_read_tear(id_, peer);
    if (torn && network_.chance(500'000)) intact = std::min(intact, first);  // the second part never comes
    const auto copy = [this, peer, theirs = up->second, offset, into, intact](std::uint64_t from, std::uint64_t to) {
        const SimFabric* target = network_.node(peer);
        if (target == nullptr || target->incarnation_ != theirs) return false;
        to = std::min(to, intact);
        if (to > from) std::memcpy(into.data() + from, target->memory_ + offset + from, to - from);
        return true;
    };
    // The memory of a dead process may go on being read, but where it asked for bytes nobody waits for them.
    const auto alive = [network = &network_, me = id_, mine = life_] {
        const SimFabric* asker = network->node(me);
        return asker != nullptr && asker->life_ == mine && !asker->dead_;
    };
    std::uint64_t first_ns = network_.now_ns() + network_.latency();
    if (network_.chance(network_.faults_.read_slow_chance))
        first_ns += network_.random_.below(network_.faults_.read_slow_ns + 1);
    network_.at(first_ns, [copy, alive, first] {
        if (alive()) copy(0, first);
    });
    network_.at(first_ns + network_.latency(), [copy, alive, finish, first, size = into.size()] {
        if (alive()) finish(copy(first, size));
    });
}

void SimFabric::write_report(ReplicaId peer, const Report& report) {
    if (!up_.contains(peer) || network_.chance(network_.faults_.message_lost_chance)) return;
    network_.deliver(Network::Kind::report, id_, peer, network_.now_ns() + network_.latency(),
                     [network = &network_, me = id_, peer, theirs = up_[peer], report] {
                         SimFabric* target = network->node(peer);
                         if (target == nullptr || target->incarnation_ != theirs) return;
                         Event event;
                         event.kind = EventKind::report;
                         event.peer = me;
                         event.report = report;
                         target->push(std::move(event));
                     });
}

void SimFabric::send(ReplicaId peer, std::span<const std::byte> message) {
    LOCKSTEP_CHECK_OP(message.size(), <=, kMaxMessageBytes);
    if (!up_.contains(peer)) return;
    if (network_.on_message) network_.on_message(id_, peer, message);
    int copies = network_.chance(network_.faults_.message_lost_chance) ? 0 : 1;
    const bool repeated = network_.chance(network_.faults_.message_repeated_chance);
    copies += repeated ? 1 : 0;
    for (; copies > 0; --copies) {
        std::uint64_t arrival_ns = network_.now_ns() + network_.latency();
        // The copy of a message can come much later: laps and lanes later.
        if (repeated && copies == 1) arrival_ns += network_.random_.below(network_.faults_.repeated_late_ns + 1);
        network_.deliver(Network::Kind::message, id_, peer, arrival_ns,
                         [network = &network_, me = id_, mine = incarnation_, peer, theirs = up_[peer],
                          bytes = std::vector<std::byte>(message.begin(), message.end())] {
                             SimFabric* target = network->node(peer);
                             if (target == nullptr || target->incarnation_ != theirs) return;
                             Event event;
                             event.kind = EventKind::message;
                             event.peer = me;
                             event.incarnation = mine;
                             target->messages_.push_back(bytes);
                             target->push(std::move(event));
                         });
    }
}

// -- Loop ------------------------------------------------------------------------------------------------------------

void SimFabric::push(Event event) {
    if (dead_) return;
    events_.push_back(std::move(event));
    if (network_.on_arrival) network_.on_arrival(id_, true);
}

void SimFabric::poll(std::chrono::nanoseconds, std::vector<Event>& events) {
    handed_out_.clear();
    handed_out_.reserve(messages_.size());
    for (Event& event : events_) {
        if (event.kind == EventKind::message) {
            handed_out_.push_back(std::move(messages_.front()));
            messages_.pop_front();
            event.bytes = handed_out_.back();
        }
        events.push_back(std::move(event));
    }
    events_.clear();
}

void SimFabric::wake() {
    if (network_.on_arrival) network_.on_arrival(id_, true);
}

std::string SimFabric::path(ReplicaId peer) const { return up_.contains(peer) ? "sim" : "not connected"; }

void SimFabric::connect_to(SimFabric& peer) {
    if (dead_ || peer.dead_) return;
    const auto up = up_.find(peer.id_);
    if (up != up_.end() && lives_[peer.id_] == peer.life_) return;
    lose(peer.id_, true);  // the life before: its end may not have been heard of yet
    up_[peer.id_] = peer.incarnation_;
    lives_[peer.id_] = peer.life_;
    Event event;
    event.kind = EventKind::peer_up;
    event.peer = peer.id_;
    event.incarnation = peer.incarnation_;
    push(std::move(event));
}

// That of an earlier one is no news.
void SimFabric::lose_life(ReplicaId peer, std::uint64_t life) {
    if (lives_[peer] == life) lose(peer, true);
}

void SimFabric::lose(ReplicaId peer, bool suspect_dead) {
    if (up_.erase(peer) == 0) return;
    board_asked_.erase(peer);
    for (const auto& [unused, lane] : lanes_)
        if (lane->peer == peer) break_later(lane, "connection lost");
    Event event;
    event.kind = EventKind::peer_down;
    event.peer = peer;
    event.suspect_dead = suspect_dead;
    push(std::move(event));
}

}  // namespace lockstep::transport::sim
