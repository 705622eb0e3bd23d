// The one incoming lane: who may write the ring, and the fence that ends that (F3).
//
// The holder's right comes into being in the last step of connecting: until then its queue pair refuses every write,
// though packets may reach it. That step and the fence exclude each other, so a fence waits for one verb at most, and
// never for a peer's address to be looked up.
#pragma once

#include "transport/link/memory.h"
#include "transport/link/target.h"
#include "transport/rdma/calls.h"
#include "transport/rdma/device.h"
#include "transport/rdma/loopback.h"
#include "transport/rdma/stock.h"
#include "transport/types.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <memory>
#include <mutex>

namespace lockstep::transport::rdma {

class IncomingLane {
 public:
    // `stock` makes queue pairs in the lane's domain; `ring` is the ring in it. All outlive this.
    IncomingLane(Device& device, Stock& stock, const link::RingMemory& memory, const RemoteRange& ring,
                 std::unique_ptr<Loopback> loopback)
        : device_(device), stock_(stock), memory_(memory), ring_(ring), loopback_(std::move(loopback)) {}

    // Protocol thread; see Fabric.
    Result<LaneAddress> open(ReplicaId holder, Incarnation incarnation);
    // The fence: the queue pair is stopped, and what it had written pushed out to memory. It is destroyed off this
    // thread; the holder is told.
    void revoke();
    bool is_open() const { return right_ != nullptr; }

    // Acceptor thread: a peer that wants to be let in; it is connected on `strand`, and gets the answer then.
    void admit(const link::Caller& caller, const LaneCall& call, const Workers::Strand& strand);

 private:
    struct Right {
        link::LaneToken token{};
        ReplicaId holder;
        Incarnation incarnation;
        std::mutex mutex;
        std::shared_ptr<QueuePair> pair;  // the below: under mutex
        bool used = false;                // its token has been shown
        bool armed = false;               // the holder may write
        bool revoked = false;
        link::Caller caller;              // who is told when it is revoked
    };

    void connect(const std::shared_ptr<Right>& right, const link::Caller& caller, const PairAddress& address);
    void push_writes_out(QueuePair& pair);

    Device& device_;
    Stock& stock_;
    const link::RingMemory& memory_;
    const RemoteRange ring_;
    std::unique_ptr<Loopback> loopback_;
    std::mutex mutex_;                    // for right_: written by the protocol thread, copied by the acceptor thread
    std::shared_ptr<Right> right_;
};

}  // namespace lockstep::transport::rdma
