#include "transport/sim/fabric.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::transport::sim {

namespace {

constexpr std::size_t kAlignment = 4096;
// A write that is not acknowledged is tried again for this long before its lane breaks.
constexpr std::uint64_t kRetriesNs = 50'000'000;

}  // namespace

SimFabric::SimFabric(Network& network, ReplicaId id, Incarnation incarnation)
    : network_(network),
      id_(id),
      incarnation_(incarnation),
      storage_(network.ring_bytes_ + kProbeLineBytes + kAlignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    memory_ = storage_.data() + (kAlignment - address % kAlignment) % kAlignment;
}

SimFabric::~SimFabric() {
    for (const auto& [unused, lane] : lanes_) lane->ended = true;
    network_.detach(id_);
}

// -- Own memory ------------------------------------------------------------------------------------------------------

Result<LaneAddress> SimFabric::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    LOCKSTEP_CHECK(!incoming_.has_value());
    incoming_ = Incoming{network_.fresh_number(), holder, incarnation, base, false};
    LaneAddress address;
    address.size = sizeof incoming_->token;
    std::memcpy(address.bytes.data(), &incoming_->token, address.size);
    return address;
}

// F3: what arrives later finds no lane with its token.
void SimFabric::revoke_incoming() { incoming_.reset(); }

// Like a network card, this fabric cannot tell what has landed.
Position SimFabric::incoming_landed() const { return {UINT64_MAX}; }

// -- Lanes -----------------------------------------------------------------------------------------------------------

void SimFabric::connect_lane(LaneId lane_id, ReplicaId peer, const LaneAddress& address) {
    LOCKSTEP_CHECK(!lanes_.contains(lane_id));
    auto lane = std::make_shared<Lane>();
    lane->id = lane_id;
    lane->holder = id_;
    lane->peer = peer;
    std::memcpy(&lane->token, address.bytes.data(), sizeof lane->token);
    lanes_[lane_id] = lane;
    const auto up = up_.find(peer);
    if (up == up_.end()) return break_later(lane, "not connected");
    lane->peer_incarnation = up->second;
    lane->next_arrival_ns = network_.now_ns() + network_.latency();
    network_.deliver(Network::Kind::piece, id_, peer, lane->next_arrival_ns, [this, lane, network = &network_] {
        SimFabric* target = network->node(lane->peer);
        if (target == nullptr || target->incarnation_ != lane->peer_incarnation || lane->ended) return;
        auto& incoming = target->incoming_;
        if (incoming && incoming->token == lane->token && !incoming->connected && incoming->holder == id_ &&
            incoming->incarnation == incarnation_) {
            incoming->connected = true;
        } else {
            break_later(lane, "refused: the lane was revoked or used before");
        }
    }, [network = &network_, lane] { lose_piece(*network, lane); });
}

// F1: with one piece lost on the way, nothing behind it lands; the holder hears that the lane is broken.
void SimFabric::lose_piece(Network& network, const LanePtr& lane) {
    lane->lost_piece = true;
    if (!lane->ended) network.node(lane->holder)->break_later(lane, "no acknowledgement: retries exhausted");
}

SimFabric::LanePtr SimFabric::lane(LaneId id) const {
    const auto found = lanes_.find(id);
    return found == lanes_.end() ? nullptr : found->second;
}

bool SimFabric::write(LaneId lane_id, Position at, std::uint64_t bytes) {
    LOCKSTEP_CHECK_OP(bytes, <=, kMaxTransferBytes);
    return post(lane_id, at, bytes, std::nullopt);
}

bool SimFabric::probe(LaneId lane_id, std::uint64_t number) { return post(lane_id, {}, 0, number); }

bool SimFabric::post(LaneId lane_id, Position at, std::uint64_t bytes, std::optional<std::uint64_t> probe) {
    const LanePtr posted = lane(lane_id);
    if (posted == nullptr || posted->broken || posted->posted - posted->completed >= kMaxUnfinishedWrites) return false;
    const std::uint64_t count = ++posted->posted;
    const std::uint64_t piece = network_.faults_.piece_bytes;
    // A break in the middle: from a random byte on nothing is sent.
    std::uint64_t sent = bytes;
    bool breaks = network_.chance(network_.faults_.lane_breaks_chance);
    if (breaks) sent = bytes == 0 ? 0 : network_.random_.below(bytes / 8 + 1) * 8;
    std::uint64_t held_from = UINT64_MAX;  // for scenarios: pieces from this byte on are held
    if (const auto cut = bytes == 0 ? std::nullopt : network_.take_write_cut(id_, posted->peer)) {
        breaks |= cut->breaks;
        if (cut->breaks) sent = std::min(bytes, cut->bytes);
        else held_from = cut->bytes;
    }
    for (std::uint64_t done = 0; done < sent || (sent == 0 && !breaks);) {
        std::uint64_t size = sent - done;
        if (piece != 0 && size > piece) size = std::min(size, (network_.random_.below(piece / 64) + 1) * 64);
        const bool holds = done + size > held_from;
        if (holds) size = held_from - done;
        if (holds) held_from = UINT64_MAX;
        const bool last = !breaks && done + size == bytes;
        posted->next_send_ns = std::max(posted->next_send_ns, network_.now_ns() + network_.random_.below(2'000));
        network_.at(posted->next_send_ns, [this, posted, at = at + done, size, last, count, probe, holds] {
            if (!posted->ended) send_piece(posted, at, size, last, count, probe);
            if (holds) network_.hold(Network::Kind::piece, id_, posted->peer);
        });
        done += size;
        if (last) break;
    }
    if (breaks) {
        // Behind the pieces before the break; what is posted later is sent later still, and so not at all.
        network_.at(posted->next_send_ns, [this, posted] {
            if (!posted->ended) break_later(posted, "write failed (a fault of the simulation)");
        });
    }
    return true;
}

// The source is read here, not when the write was posted: F9 is the caller's to keep until the lane's end.
void SimFabric::send_piece(const LanePtr& lane, Position at, std::uint64_t bytes, bool last, std::uint64_t count,
                           std::optional<std::uint64_t> probe) {
    if (lane->broken) return;
    std::vector<std::byte> content(bytes);
    const std::uint64_t offset = at.value & (network_.ring_bytes_ - 1);
    if (bytes != 0) std::memcpy(content.data(), memory_ + offset, bytes);
    if (network_.is_cut(id_, lane->peer)) return break_later(lane, "no acknowledgement: retries exhausted");
    lane->next_arrival_ns = std::max(lane->next_arrival_ns, network_.now_ns() + network_.latency());
    network_.deliver(Network::Kind::piece, id_, lane->peer, lane->next_arrival_ns,
                     [network = &network_, lane, at, content = std::move(content), last, count, probe] {
                         land(*network, lane, at, content, last, count, probe);
                     },
                     [network = &network_, lane] { lose_piece(*network, lane); });
}

// What is on its way lands whether or not its sender still lives; only a living one hears of it.
void SimFabric::land(Network& network, const LanePtr& lane, Position at, const std::vector<std::byte>& bytes, bool last,
                     std::uint64_t count, std::optional<std::uint64_t> probe) {
    SimFabric* target = network.node(lane->peer);
    if (target == nullptr || target->incarnation_ != lane->peer_incarnation) return;
    const bool stands = target->incoming_ && target->incoming_->token == lane->token && target->incoming_->connected;
    if (!stands && !network.chance(network.faults_.fence_leaks_chance)) {
        lane->lost_piece = true;
        if (!lane->ended) network.node(lane->holder)->break_later(lane, "remote access refused: the lane was revoked");
        return;
    }
    if (lane->lost_piece) return;  // F1: nothing lands behind what did not
    const std::uint64_t offset = at.value & (network.ring_bytes_ - 1);
    if (!bytes.empty()) std::memcpy(target->memory_ + offset, bytes.data(), bytes.size());
    if (probe) std::memcpy(target->memory_ + network.ring_bytes_, &*probe, sizeof *probe);
    if (network.on_arrival) network.on_arrival(lane->peer, false);
    if (last && !lane->ended) network.node(lane->holder)->complete(lane, count);
}

void SimFabric::complete(const LanePtr& lane, std::uint64_t count) {
    if (lane->broken) return;
    if (network_.chance(network_.faults_.completion_lost_chance)) {
        break_later(lane, "completion lost (a fault of the simulation)");
        return;
    }
    lane->next_completion_ns = std::max(lane->next_completion_ns, network_.now_ns() + network_.latency());
    if (network_.is_cut(lane->peer, id_)) return break_later(lane, "no acknowledgement: retries exhausted");
    network_.deliver(Network::Kind::completion, lane->peer, id_, lane->next_completion_ns, [this, lane, count] {
        if (lane->ended || lane->broken) return;
        lane->completed = count;
        Event event;
        event.kind = EventKind::landed;
        event.peer = lane->peer;
        event.lane = lane->id;
        event.count = count;
        push(std::move(event));
    }, [this, lane] {
        if (!lane->ended) break_later(lane, "no acknowledgement: retries exhausted");
    });
}

// From now on nothing of it is sent or completed; what was sent may still land. The holder hears of it later.
void SimFabric::break_later(const LanePtr& lane, const std::string& why) {
    if (lane->broken) return;
    lane->broken = true;
    const bool reachable = !network_.is_cut(id_, lane->peer) && !network_.is_cut(lane->peer, id_);
    network_.at(network_.now_ns() + (reachable ? network_.latency() : kRetriesNs), [this, lane, why] {
        if (lane->ended) return;
        Event event;
        event.kind = EventKind::lane_broken;
        event.peer = lane->peer;
        event.lane = lane->id;
        event.why = why;
        push(std::move(event));
    });
}

void SimFabric::end_lane(LaneId lane_id) {
    const LanePtr ended = lane(lane_id);
    if (ended == nullptr) return;
    ended->ended = ended->broken = true;
    lanes_.erase(lane_id);
    std::erase_if(events_, [&](const Event& event) { return event.lane == lane_id && event.lane; });
}

void SimFabric::break_lane(ReplicaId peer, const std::string& why) {
    for (const auto& [unused, lane] : lanes_)
        if (lane->peer == peer) break_later(lane, why);
}

// -- Reads, reports, messages ----------------------------------------------------------------------------------------

void SimFabric::read_board(ReplicaId peer) {
    if (!up_.contains(peer) || !board_asked_.insert(peer).second) return;
    const Incarnation theirs = up_[peer];
    const std::uint64_t there_ns = network_.now_ns() + network_.latency();
    network_.at(there_ns + kRetriesNs, [network = &network_, me = id_, mine = incarnation_, peer] {
        // Lost on a link that was cut for a while: the connection would have tried again by itself.
        SimFabric* asker = network->node(me);
        if (asker != nullptr && asker->incarnation_ == mine) asker->board_asked_.erase(peer);
    });
    network_.deliver(Network::Kind::read, id_, peer, there_ns, [network = &network_, me = id_, mine = incarnation_,
                                                                peer, theirs] {
        SimFabric* target = network->node(peer);
        if (target == nullptr || target->incarnation_ != theirs) return;
        auto answer = [network, me, mine, peer, theirs](Board board) {
            network->deliver(Network::Kind::read, peer, me, network->now_ns() + network->latency(),
                             [network, me, mine, peer, theirs, board] {
                                 SimFabric* asker = network->node(me);
                                 if (asker == nullptr || asker->incarnation_ != mine) return;
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
                    [network = &network_, me = id_, mine = incarnation_, finish] {
                        const SimFabric* asker = network->node(me);
                        if (asker != nullptr && asker->incarnation_ == mine) finish(false);
                    });
        return;
    }
    // Read in two parts at two times where it is torn.
    const bool torn = network_.chance(network_.faults_.read_torn_chance);
    const std::uint64_t first = torn ? network_.random_.below(into.size() / 8 + 1) * 8 : into.size();
    const std::uint64_t offset = at.value & (network_.ring_bytes_ - 1);
    const std::uint64_t intact = network_.take_read_tear(id_, peer);
    const auto copy = [this, peer, theirs = up->second, offset, into, intact](std::uint64_t from, std::uint64_t to) {
        const SimFabric* target = network_.node(peer);
        if (target == nullptr || target->incarnation_ != theirs) return false;
        to = std::min(to, intact);
        if (to > from) std::memcpy(into.data() + from, target->memory_ + offset + from, to - from);
        return true;
    };
    const auto alive = [network = &network_, me = id_, mine = incarnation_] {
        const SimFabric* asker = network->node(me);
        return asker != nullptr && asker->incarnation_ == mine;
    };
    const std::uint64_t first_ns = network_.now_ns() + network_.latency();
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
    int copies = network_.chance(network_.faults_.message_lost_chance) ? 0 : 1;
    copies += network_.chance(network_.faults_.message_repeated_chance) ? 1 : 0;
    for (; copies > 0; --copies) {
        network_.deliver(Network::Kind::message, id_, peer, network_.now_ns() + network_.latency(),
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
    const auto up = up_.find(peer.id_);
    if (up != up_.end() && up->second == peer.incarnation_) return;
    up_[peer.id_] = peer.incarnation_;
    Event event;
    event.kind = EventKind::peer_up;
    event.peer = peer.id_;
    event.incarnation = peer.incarnation_;
    push(std::move(event));
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
