// Answers peers that want to connect queue pairs: their control pairs here, and the one incoming lane.
#pragma once

#include "transport/link/target.h"
#include "transport/rdma/calls.h"
#include "transport/rdma/incoming.h"
#include "transport/rdma/regions.h"
#include "transport/rdma/stock.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>

namespace lockstep::transport::rdma {

class Desk final : public link::CallDesk {
 public:
    // One per peer, in the order of `regions`; all outlive this.
    Desk(const Regions& regions, std::deque<Stock>& stocks, IncomingLane& lane);

    void called(const link::Caller& caller, std::span<const std::byte> call) override;
    void gone(ReplicaId peer, std::uint64_t connection) override;

 private:
    // This replica's passive end of a peer's control pair. Only jobs of the peer's strand touch it.
    struct End {
        const PeerRegions& regions;
        Stock& stock;
        std::shared_ptr<QueuePair> pair;
        std::uint64_t connection = 0;  // the control connection that it came with, and goes with
    };

    End* end_of(ReplicaId peer);
    static void make_pair(End& end, const link::Caller& caller, const PairAddress& address);
    static void drop_pair(End& end);

    std::deque<End> ends_;
    IncomingLane& lane_;
};

}  // namespace lockstep::transport::rdma
