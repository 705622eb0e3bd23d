#include "transport/tcp/fabric.h"

#include "transport/link/station.h"
#include "transport/tcp/gate.h"
#include "transport/tcp/lanes.h"

#include <utility>
#include <vector>

namespace lockstep::transport::tcp {
namespace {

using link::ControlLink;
using link::Station;

class FabricOverTcp final : public TcpFabric {
 public:
    explicit FabricOverTcp(std::unique_ptr<Station> station) : station_(std::move(station)), lanes_(*station_) {}
    // First the thread that uses the lanes' door.
    ~FabricOverTcp() override { station_->end(); }

    Result<void> start() { return station_->start({.lanes = &lanes_.door()}); }

    std::uint16_t listen_port() const override { return station_->listen_port(); }
    void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) override {
        station_->set_peer_address(peer, host, port);
    }

    std::span<std::byte> ring() override { return station_->memory().ring(); }
    void publish(const Board& board) override { station_->board().publish(board); }
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) override;
    void revoke_incoming() override { lanes_.revoke_incoming(); }
    Position incoming_landed() const override { return lanes_.incoming_landed(); }

    void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) override {
        lanes_.connect(lane, peer, token_of(address));
    }
    bool write(LaneId lane, Position at, std::uint64_t bytes) override {
        OutgoingLane* to = lanes_.find(lane);
        return to != nullptr && to->write(at, bytes);
    }
    bool probe(LaneId lane, std::uint64_t number) override {
        OutgoingLane* to = lanes_.find(lane);
        return to != nullptr && to->probe(number);
    }
    void flush() override;
    void end_lane(LaneId lane) override { lanes_.end(lane); }

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
    int wake_descriptor() const override { return station_->waker().descriptor(); }
    std::string path(ReplicaId peer) const override {
        const ControlLink* link = station_->link_to(peer);
        return link != nullptr ? link->path() : "not reached: it is no peer of this replica";
    }

 private:
    std::unique_ptr<Station> station_;
    Lanes lanes_;
};

Result<LaneAddress> FabricOverTcp::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    if (station_->link_to(holder) == nullptr)
        return Error("cannot open a lane for r" + std::to_string(holder.value) + ": it is no peer of this replica");
    return lanes_.open_incoming(holder, incarnation, base);
}

void FabricOverTcp::flush() {
    lanes_.flush();
    for (const auto& link : station_->links()) link->push();
}

void FabricOverTcp::poll(std::chrono::nanoseconds wait, std::vector<Event>& events) {
    for (const auto& link : station_->links()) link->push();
    const bool news = lanes_.watch();
    // Only the holder of a lane waits for answers that a commit waits for; a follower's part is the acceptor thread's.
    // So there is one spinning thread per replica, not two.
    station_->wait(wait, news, !lanes_.empty());
    station_->collect(events);
    lanes_.report(events);
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
