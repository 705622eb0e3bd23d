// This replica's end of the control pair that it has asked a peer for: reads of the peer's board and ring, and its
// report slot there. Protocol thread.
#pragma once

#include "transport/link/station.h"
#include "transport/rdma/calls.h"
#include "transport/rdma/queue_pair.h"
#include "transport/rdma/regions.h"
#include "transport/types.h"

#include <lockstep/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace lockstep::transport::rdma {

class ControlPair {
 public:
    // Requests that can be under way at once: one of each kind.
    static constexpr unsigned kRequests = 3;

    // `number` is the peer's place in `pages`. All outlive this.
    ControlPair(link::Station& station, const PeerRegions& regions, const SidePages& pages, std::size_t number);

    // From asking to up to down; then anew, with another queue pair. `down` answers what is under way, stops the queue
    // pair, and returns it to be destroyed; null if there is none.
    void ask(std::shared_ptr<QueuePair> pair, std::uint64_t call);
    void up();
    std::shared_ptr<QueuePair> down();
    // What the peer has said of itself, kept until `up`.
    void answered(const PairReply& reply) { peer_ = reply; }

    ReplicaId peer() const { return regions_.peer; }
    bool is_up() const { return up_; }
    const std::shared_ptr<QueuePair>& pair() const { return pair_; }
    std::uint64_t call() const { return call_; }
    // Whether an answer to read_board is awaited.
    bool board_asked() const { return board_asked_; }

    // See Fabric.
    void read_board();
    void read_ring(ReadId read, Position at, std::span<std::byte> into);
    void write_report(const Report& report);

    // A completion of this queue pair. The error says why it is of no more use.
    Result<void> completed(const ibv_wc& completion);
    // Called in even intervals. The error says that there has been no progress for so many of them.
    Result<void> tick(unsigned patience);

 private:
    enum class Kind : std::uint8_t { board, piece, report };
    struct Read {
        ReadId id;
        Position at;                 // the next byte wanted
        std::span<std::byte> into;   // the rest of it
    };

    void post(Kind kind, ibv_wr_opcode opcode, std::span<std::byte> own, std::uint64_t remote, std::uint32_t key);
    void read_piece();
    void send_report();
    void take_piece();

    link::Station& station_;
    const PeerRegions& regions_;
    const SidePages& pages_;
    const std::size_t number_;
    std::shared_ptr<QueuePair> pair_;
    PairReply peer_;
    std::uint64_t call_ = 0;
    bool up_ = false;
    std::optional<std::string> failed_;          // a request that could not be posted
    std::deque<Kind> under_way_;                 // in the order posted
    std::uint64_t posted_ = 0;                   // so far
    std::uint64_t completed_ = 0;
    std::uint64_t completed_at_tick_ = 0;
    unsigned idle_ticks_ = 0;
    bool board_asked_ = false;
    std::deque<Read> reads_;                     // asked and not answered wholly, in order
    std::size_t piece_bytes_ = 0;
    std::optional<Report> report_;               // waits until the one under way has arrived
    bool report_under_way_ = false;
};

}  // namespace lockstep::transport::rdma
