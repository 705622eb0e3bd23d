// Lanes: how writes travel, land and complete, and what a fence stops (F1 to F5, F9).
#include "transport/sim/fabric.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::transport::sim {

namespace {

// More than this of a write does not land while its lane is being fenced.
constexpr std::uint64_t kPiecesInFence = 8;

}  // namespace

// -- Incoming --------------------------------------------------------------------------------------------------------

Result<LaneAddress> SimFabric::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    LOCKSTEP_CHECK(!incoming_.has_value());
    incoming_ = Incoming{network_.fresh_number(), holder, incarnation, base, base, false, {}};
    LaneAddress address;
    address.size = sizeof incoming_->token;
    std::memcpy(address.bytes.data(), &incoming_->token, address.size);
    return address;
}

// F3: what arrives later finds no lane with its token. A fence takes time, in which writes still land.
void SimFabric::revoke_incoming() {
    if (!incoming_ || dead_) return;
    const LanePtr lane = incoming_->lane;
    if (lane != nullptr && network_.is_open(Network::Kind::piece, lane->holder, id_) &&
        network_.chance(network_.faults_.fence_slow_chance)) {
        const std::uint64_t pieces = 1 + network_.random_.below(kPiecesInFence);
        for (std::uint64_t i = 0; i < pieces && !lane->flying.empty(); ++i)
            arrive(network_, lane, lane->flying.front());
    }
    incoming_.reset();
}

Position SimFabric::incoming_landed() const {
    // Like a network card, this fabric cannot tell what has landed, unless it plays one that can.
    if (network_.faults_.tells_landed == 0) return {UINT64_MAX};
    return incoming_ ? incoming_->landed : Position{};
}

// -- Outgoing --------------------------------------------------------------------------------------------------------

void SimFabric::connect_lane(LaneId lane_id, ReplicaId peer, const LaneAddress& address) {
    LOCKSTEP_CHECK(!lanes_.contains(lane_id));
    if (network_.on_connect) network_.on_connect(id_, incarnation_, peer, address);
    auto lane = std::make_shared<Lane>();
    lane->id = lane_id;
    lane->holder = id_;
    lane->holder_incarnation = incarnation_;
    lane->holder_life = life_;
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
            incoming->connected = lane->connected = true;
            incoming->lane = lane;
        } else {
            break_later(lane, "refused: the lane was revoked or used before");
        }
    }, [network = &network_, lane] { lose_piece(*network, lane); });
}

// F1: with one piece lost on the way, nothing behind it lands; the holder hears that the lane is broken.
void SimFabric::lose_piece(Network& network, const LanePtr& lane) {
    lane->lost_piece = true;
    lane->flying.clear();
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
    if (network_.now_ns() < lane->stalled_until_ns) {  // behind one that is being sent again
        network_.at(lane->stalled_until_ns, [this, lane, at, bytes, last, count, probe] {
            if (!lane->ended) send_piece(lane, at, bytes, last, count, probe);
        });
        return;
    }
    if (network_.is_cut(id_, lane->peer)) return break_later(lane, "no acknowledgement: retries exhausted");
    auto piece = std::make_shared<Piece>(Piece{at, std::vector<std::byte>(bytes), last, count, probe, false});
    const std::uint64_t offset = at.value & (network_.ring_bytes_ - 1);
    if (bytes != 0) std::memcpy(piece->content.data(), memory_ + offset, bytes);
    if (network_.chance(network_.faults_.retransmit_chance)) {
        // It lands, but its acknowledgement is lost: it is sent again, from the source as that is by then.
        piece->last = false;
        lane->stalled_until_ns = network_.now_ns() + 1 + network_.random_.below(network_.faults_.retransmit_ns + 1);
        network_.at(lane->stalled_until_ns, [this, lane, at, bytes, last, count, probe] {
            if (!lane->ended) send_piece(lane, at, bytes, last, count, probe);
        });
    }
    lane->next_arrival_ns = std::max(lane->next_arrival_ns, network_.now_ns() + network_.latency());
    lane->flying.push_back(piece);
    network_.deliver(Network::Kind::piece, id_, lane->peer, lane->next_arrival_ns,
                     [network = &network_, lane, piece] {
                         if (piece->arrived) return;
                         const bool lands = arrive(*network, lane, piece);
                         if (lands && network->on_landed) network->on_landed(lane->peer, lane->holder,
                                                                             lane->holder_incarnation);
                     },
                     [network = &network_, lane] { lose_piece(*network, lane); });
}

// What is on its way lands whether or not its sender still lives; only a living one hears of it.
bool SimFabric::arrive(Network& network, const LanePtr& lane, const PiecePtr piece) {
    piece->arrived = true;
    std::erase(lane->flying, piece);
    SimFabric* target = network.node(lane->peer);
    if (target == nullptr || target->incarnation_ != lane->peer_incarnation) return false;
    auto& incoming = target->incoming_;
    bool stands = incoming && incoming->token == lane->token && incoming->connected;
    if (LOCKSTEP_PLANTED(fence_skipped)) stands |= lane->connected;
    if (LOCKSTEP_PLANTED(packet_after_fence)) stands |= lane->connected && !lane->lost_piece;
    if (!stands && !network.chance(network.faults_.fence_leaks_chance)) {
        lane->lost_piece = true;
        if (!lane->ended) network.node(lane->holder)->break_later(lane, "remote access refused: the lane was revoked");
        return false;
    }
    if (lane->lost_piece) return false;  // F1: nothing lands behind what did not
    const bool fenced = !incoming || incoming->token != lane->token;
    if (LOCKSTEP_PLANTED(packet_after_fence)) lane->lost_piece = fenced;
    const std::uint64_t offset = piece->at.value & (network.ring_bytes_ - 1);
    if (!piece->content.empty()) {
        std::memcpy(target->memory_ + offset, piece->content.data(), piece->content.size());
        if (!fenced) incoming->landed = std::max(incoming->landed, piece->at + piece->content.size());
    }
    if (piece->probe) std::memcpy(target->memory_ + network.ring_bytes_, &*piece->probe, sizeof *piece->probe);
    if (network.on_arrival) network.on_arrival(lane->peer, false);
    if (piece->last && !lane->ended) network.node(lane->holder)->complete(lane, piece->count);
    return true;
}

void SimFabric::complete(const LanePtr& lane, std::uint64_t count) {
    if (lane->broken) return;
    if (network_.chance(network_.faults_.completion_lost_chance)) {
        break_later(lane, "completion lost (a fault of the simulation)");
        return;
    }
    lane->next_completion_ns = std::max(lane->next_completion_ns, network_.now_ns() + network_.latency());
    if (network_.is_cut(lane->peer, id_)) return break_later(lane, "no acknowledgement: retries exhausted");
    network_.deliver(Network::Kind::completion, lane->peer, id_, lane->next_completion_ns,
                     [network = &network_, lane, count] {
        SimFabric* holder = network->node(lane->holder);
        if (holder == nullptr || holder->life_ != lane->holder_life) return;
        if ((lane->ended || lane->broken) && !LOCKSTEP_PLANTED(old_lane_counted)) return;
        lane->completed = count;
        Event event;
        event.kind = EventKind::landed;
        event.peer = lane->peer;
        event.lane = lane->id;
        event.count = count;
        holder->push(std::move(event));
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
    if (LOCKSTEP_PLANTED(old_lane_counted)) return;
    std::erase_if(events_, [&](const Event& event) { return event.lane == lane_id && event.lane; });
}

void SimFabric::break_lane(ReplicaId peer, const std::string& why) {
    for (const auto& [unused, lane] : lanes_)
        if (lane->peer == peer) break_later(lane, why);
}

}  // namespace lockstep::transport::sim
