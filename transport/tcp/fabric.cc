#include "transport/tcp/fabric.h"

#include "log/check.h"
#include "transport/link/station.h"
#include "transport/tcp/door.h"
#include "transport/tcp/gate.h"
#include "transport/tcp/outgoing_lane.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::transport::tcp {
namespace {

using link::ControlLink;
using link::Station;

class FabricOverTcp final : public TcpFabric {
 public:
    explicit FabricOverTcp(std::unique_ptr<Station> station)
        : door_(gate_, station->memory(), station->waker()), station_(std::move(station)) {}

    Result<void> start() { return station_->start({.lanes = &door_}); }

    std::uint16_t listen_port() const override { return station_->listen_port(); }
    void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) override {
        station_->set_peer_address(peer, host, port);
    }

    std::span<std::byte> ring() override { return station_->memory().ring(); }
    void publish(const Board& board) override { station_->board().publish(board); }
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) override;
    void revoke_incoming() override { gate_.revoke(); }
    Position incoming_landed() const override { return gate_.landed(); }

    void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) override;
    bool write(LaneId lane, Position at, std::uint64_t bytes) override;
    bool probe(LaneId lane, std::uint64_t number) override;
    void flush() override;
    void end_lane(LaneId lane) override;

    void read_board(ReplicaId peer) override {
        if (ControlLink* link = station_->link_to(peer)) link->ask_board();
    }
    void read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) override {
        if (ControlLink* link = station_->link_to(peer)) return link->ask_ring(read, at, into);
        station_->tell_read(read, peer, false);
    }
    void write_report(ReplicaId peer, const Report& report) override {
        if (ControlLink* link = station_->link_to(peer)) link->write_report(report);
    }
    void send(ReplicaId peer, std::span<const std::byte> message) override {
        if (ControlLink* link = station_->link_to(peer)) link->send(message);
    }

    void poll(std::chrono::nanoseconds wait, std::vector<Event>& events) override;
    void wake() override { station_->waker().wake(); }
    std::string path(ReplicaId peer) const override {
        const ControlLink* link = station_->link_to(peer);
        return link != nullptr ? link->path() : "not reached: it is no peer of this replica";
    }

 private:
    OutgoingLane* lane(LaneId id) const;

    Gate gate_;
    Door door_;
    std::unique_ptr<Station> station_;  // behind what its threads use
    std::vector<std::shared_ptr<OutgoingLane>> lanes_;  // as many as peers: a search is short
};

OutgoingLane* FabricOverTcp::lane(LaneId id) const {
    for (const auto& one : lanes_)
        if (one->id() == id) return one.get();
    return nullptr;
}

Result<LaneAddress> FabricOverTcp::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    if (station_->link_to(holder) == nullptr)
        return Error("cannot open a lane for r" + std::to_string(holder.value) + ": it is no peer of this replica");
    return gate_.open(holder, incarnation, base);
}

void FabricOverTcp::connect_lane(LaneId id, ReplicaId peer, const LaneAddress& address) {
    LOCKSTEP_CHECK(id);
    LOCKSTEP_CHECK(lane(id) == nullptr);
    lanes_.push_back(std::make_shared<OutgoingLane>(station_->initiator(), id, peer));
    OutgoingLane& made = *lanes_.back();
    const ControlLink* link = station_->link_to(peer);
    if (link == nullptr || !link->endpoint()) return made.break_off("its address is not known");
    const auto token = token_of(address);
    if (!token) return made.break_off(token.error().message());
    made.connect(*link->endpoint(), token.value());
}

bool FabricOverTcp::write(LaneId id, Position at, std::uint64_t bytes) {
    OutgoingLane* to = lane(id);
    return to != nullptr && to->write(at, bytes);
}

bool FabricOverTcp::probe(LaneId id, std::uint64_t number) {
    OutgoingLane* to = lane(id);
    return to != nullptr && to->probe(number);
}

void FabricOverTcp::flush() {
    for (const auto& one : lanes_) one->flush();
    for (const auto& link : station_->links()) link->push();
}

void FabricOverTcp::end_lane(LaneId id) {
    const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& one) { return one->id() == id; });
    if (found == lanes_.end()) return;
    (*found)->end();
    lanes_.erase(found);
}

void FabricOverTcp::poll(std::chrono::nanoseconds wait, std::vector<Event>& events) {
    for (const auto& link : station_->links()) link->push();
    for (const auto& one : lanes_) one->watch();
    const bool news = std::any_of(lanes_.begin(), lanes_.end(), [](const auto& one) { return one->has_news(); });
    // Only the holder of a lane waits for answers that a commit waits for; a follower's part is the acceptor thread's.
    // So there is one spinning thread per replica, not two.
    station_->wait(wait, news, !lanes_.empty());
    station_->collect(events);
    for (const auto& one : lanes_) one->report(events);
    // A broken lane stays broken (F5): once that is said, there is none of that name.
    std::erase_if(lanes_, [](const auto& one) { return one->broken(); });
}

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::open(const TcpOptions& options) {
    const std::string what = "cannot open the TCP fabric of r" + std::to_string(options.id.value);
    auto station = Station::make(options, link::Pages::plain);
    if (!station) return std::move(station).error().within(what);
    auto fabric = std::make_unique<FabricOverTcp>(std::move(station).value());
    if (auto started = fabric->start(); !started) return std::move(started).error().within(what);
    return std::unique_ptr<TcpFabric>(std::move(fabric));
}

}  // namespace lockstep::transport::tcp
