// One node's fabric in a simulated network. See network.h.
#pragma once

#include "transport/fabric.h"
#include "transport/sim/network.h"

#include <lockstep/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::transport::sim {

// A write that is not acknowledged is tried again for this long before its lane breaks.
inline constexpr std::uint64_t kRetriesNs = 50'000'000;

class SimFabric final : public Fabric {
 public:
    SimFabric(Network& network, ReplicaId id, Incarnation incarnation);
    // The end of this life: its memory is gone, peers notice, what it had under way is lost.
    ~SimFabric() override;

    std::span<std::byte> ring() override { return {memory_, network_.ring_bytes_}; }
    void publish(const Board& board) override { board_ = board; }
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) override;
    void revoke_incoming() override;
    Position incoming_landed() const override;
    void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) override;
    bool write(LaneId lane, Position at, std::uint64_t bytes) override;
    bool probe(LaneId lane, std::uint64_t number) override;
    void flush() override {}
    void end_lane(LaneId lane) override;
    void read_board(ReplicaId peer) override;
    void read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) override;
    void write_report(ReplicaId peer, const Report& report) override;
    void send(ReplicaId peer, std::span<const std::byte> message) override;
    // Does not wait: time is virtual, and the network's owner decides when to call.
    void poll(std::chrono::nanoseconds wait, std::vector<Event>& events) override;
    void wake() override;
    std::string path(ReplicaId peer) const override;

    ReplicaId id() const { return id_; }
    Incarnation incarnation() const { return incarnation_; }
    bool has_events() const { return !events_.empty(); }
    // Outgoing lanes that were not ended.
    std::size_t lanes() const { return lanes_.size(); }
    // Its process has ended, and its memory still answers; `heard`: peers see its control links close.
    void outlive_process(bool heard);
    // Who may write this ring now; none: nobody.
    ReplicaId incoming_holder() const { return incoming_ ? incoming_->holder : ReplicaId{}; }
    // Breaks an outgoing lane, as a fault: what is under way may or may not land.
    void break_lane(ReplicaId peer, const std::string& why);

 private:
    friend class Network;
    struct Piece {
        Position at;
        std::vector<std::byte> content;
        bool last = false;  // of its write
        std::uint64_t count = 0;
        std::optional<std::uint64_t> probe;
        bool arrived = false;
    };
    using PiecePtr = std::shared_ptr<Piece>;
    // An outgoing lane. Shared with what is under way, which checks whether it still stands: one that is not ended has
    // a living holder.
    struct Lane {
        LaneId id;
        ReplicaId holder;
        Incarnation holder_incarnation;
        std::uint64_t holder_life = 0;
        ReplicaId peer;
        Incarnation peer_incarnation;
        std::uint64_t token = 0;
        bool connected = false;  // once its right to write was granted
        bool ended = false;   // by its holder: no event comes any more, unsent bytes are not sent
        bool broken = false;  // takes no more
        bool lost_piece = false;  // F1: nothing lands behind a piece that did not
        std::uint64_t posted = 0;
        std::uint64_t completed = 0;
        std::deque<PiecePtr> flying;        // sent and not yet arrived, in order
        std::uint64_t stalled_until_ns = 0;    // a piece is sent again then, and nothing before it
        std::uint64_t next_send_ns = 0;     // F1: pieces are sent,
        std::uint64_t next_arrival_ns = 0;  // arrive,
        std::uint64_t next_completion_ns = 0;  // and are completed in order
    };
    using LanePtr = std::shared_ptr<Lane>;
    // The right to write this ring.
    struct Incoming {
        std::uint64_t token = 0;
        ReplicaId holder;
        Incarnation incarnation;
        Position base;
        Position landed;  // how far bytes are there, without a gap
        bool connected = false;
        LanePtr lane;     // once connected
    };

    bool post(LaneId id, Position at, std::uint64_t bytes, std::optional<std::uint64_t> probe);
    void send_piece(const LanePtr& lane, Position at, std::uint64_t bytes, bool last, std::uint64_t count,
                    std::optional<std::uint64_t> probe);
    static bool arrive(Network& network, const LanePtr& lane, PiecePtr piece);  // whether it landed
    static void lose_piece(Network& network, const LanePtr& lane);
    void complete(const LanePtr& lane, std::uint64_t count);
    void break_later(const LanePtr& lane, const std::string& why);
    LanePtr lane(LaneId id) const;
    void push(Event event);
    void connect_to(SimFabric& peer);
    void lose(ReplicaId peer, bool suspect_dead);
    void lose_life(ReplicaId peer, std::uint64_t life);

    Network& network_;
    const ReplicaId id_;
    const Incarnation incarnation_;
    const std::uint64_t life_;  // of the process: a replica that comes back with its disk keeps its incarnation
    std::vector<std::byte> storage_;
    std::byte* memory_ = nullptr;
    Board board_;
    std::optional<Incoming> incoming_;
    bool dead_ = false;
    std::map<LaneId, LanePtr> lanes_;
    std::map<ReplicaId, Incarnation> up_;
    std::map<ReplicaId, std::uint64_t> lives_;  // of those that are, or were last, connected
    std::set<ReplicaId> board_asked_;
    std::deque<Event> events_;
    std::deque<std::vector<std::byte>> messages_;  // of queued events, oldest first
    std::vector<std::vector<std::byte>> handed_out_;
};

}  // namespace lockstep::transport::sim
