// The fabric over RDMA, in full; users see fabric.h.
#pragma once

#include "transport/link/station.h"
#include "transport/rdma/completions.h"
#include "transport/rdma/control_pair.h"
#include "transport/rdma/desk.h"
#include "transport/rdma/detours.h"
#include "transport/rdma/device.h"
#include "transport/rdma/fabric.h"
#include "transport/rdma/incoming.h"
#include "transport/rdma/outgoing_lane.h"
#include "transport/rdma/regions.h"
#include "transport/rdma/report_slots.h"
#include "transport/rdma/stock.h"
#include "transport/rdma/workers.h"
#include "transport/tcp/lanes.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::transport::rdma {

using link::ControlLink;
using link::Station;

// A peer's writes into this memory wake nobody. As long as a lane is open the protocol thread looks by itself: so soon
// after entries or reports have moved, less and less often when none do (heartbeats do not count).
inline constexpr auto kLookSoon = std::chrono::microseconds(500);
inline constexpr auto kLookAtOnce = std::chrono::microseconds(50);  // where commits wait for it
inline constexpr auto kLookLate = std::chrono::milliseconds(10);

class FabricOverRdma final : public RdmaFabric, private link::LinkWatcher, private link::WorkSource {
 public:
    explicit FabricOverRdma(std::unique_ptr<Station> station)
        : station_(std::move(station)), ticker_(station_->context()) {}
    ~FabricOverRdma() override;
    Result<void> start(const RdmaOptions& options);

    std::uint16_t listen_port() const override { return station_->listen_port(); }
    void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) override {
        station_->set_peer_address(peer, host, port);
    }

    std::span<std::byte> ring() override { return station_->memory().ring(); }
    void publish(const Board& board) override {
        pages_->publish(board);
        if (tcp_) station_->board().publish(board);
    }
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) override;
    void revoke_incoming() override {
        incoming_->revoke();
        if (tcp_) tcp_->revoke_incoming();
    }
    Position incoming_landed() const override { return {std::numeric_limits<std::uint64_t>::max()}; }

    void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) override;
    bool write(LaneId lane, Position at, std::uint64_t bytes) override;
    bool probe(LaneId lane, std::uint64_t number) override;
    void flush() override;
    void end_lane(LaneId lane) override;

    void read_board(ReplicaId peer) override {
        if (ControlLink* link = link_without_rdma(peer)) return link->ask_board();
        if (ControlPair* pair = pair_to(peer)) pair->read_board();
    }
    void read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) override {
        if (ControlLink* link = link_without_rdma(peer)) return link->ask_ring(read, at, into);
        if (ControlPair* pair = pair_to(peer)) return pair->read_ring(read, at, into);
        station_->tell_read(read, peer, false);
    }
    void write_report(ReplicaId peer, const Report& report) override {
        active_ = true;
        if (ControlLink* link = link_without_rdma(peer)) return link->write_report(report);
        if (ControlPair* pair = pair_to(peer)) pair->write_report(report);
    }
    void send(ReplicaId peer, std::span<const std::byte> message) override {
        if (ControlLink* link = station_->link_to(peer)) link->send(message);
    }

    void poll(std::chrono::nanoseconds wait, std::vector<Event>& events) override;
    void wake() override { station_->waker().wake(); }
    int wake_descriptor() const override { return station_->waker().descriptor(); }
    std::string path(ReplicaId peer) const override;

 private:
    // Of the control links.
    void reached(ControlLink& link) override;
    void lost(ControlLink& link, bool suspect_dead) override;
    void replied(ControlLink& link, std::uint64_t call, std::span<const std::byte> reply) override;
    // Of the sleeper.
    bool look() override;
    bool arm() override;

    void ask_pair(ControlLink& link);
    void give_up(ControlLink& link, const std::string& why);
    void take_detour(ReplicaId peer, const std::string& why);
    void end_detour(ReplicaId peer);
    void try_rdma_again();
    ControlLink* link_without_rdma(ReplicaId peer);
    void pair_replied(ControlLink& link, ControlPair& pair, const Reply& reply);
    void pair_connected(ReplicaId peer, std::uint64_t call, const Result<void>& connected);
    static void lane_replied(OutgoingLane& lane, const Reply& reply);
    void completed(const ibv_wc& completion);
    void heard(DeviceNews news);
    void tick();
    void release_broken_lanes();

    ControlPair* pair_to(ReplicaId peer);
    Stock& stock_of(ReplicaId peer);
    const PeerRegions& regions_of(ReplicaId peer) const;
    OutgoingLane* lane(LaneId id) const;

    // In this order each uses what stands before it.
    std::unique_ptr<Station> station_;
    std::unique_ptr<Device> device_;
    std::optional<SidePages> pages_;
    std::optional<ReportSlots> slots_;
    std::optional<Regions> regions_;
    std::optional<RestingNumbers> resting_;
    std::unique_ptr<Completions> completions_;
    std::optional<Workers> workers_;
    std::optional<Stock> lane_stock_;
    std::deque<Stock> stocks_;                          // one per peer, as in regions_
    std::optional<IncomingLane> incoming_;
    std::optional<Desk> desk_;
    std::deque<ControlPair> pairs_;                     // likewise
    std::optional<tcp::Lanes> tcp_;                     // to fall back on; else none
    Detours detours_;
    std::vector<std::unique_ptr<OutgoingLane>> lanes_;  // as many as peers: a search is short
    boost::asio::steady_timer ticker_;
    std::chrono::nanoseconds look_after_ = kLookSoon;
    bool active_ = false;                               // entries or reports have moved since the last poll
    std::string why_no_port_;                           // the port cannot be used now; else empty
};

}  // namespace lockstep::transport::rdma
