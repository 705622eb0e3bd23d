// The gate of the ring: who may write it, and the fence that ends that (F3).
//
// The protocol thread opens and revokes; the acceptor thread admits a connection and receives for it. The acceptor
// holds the right's mutex around every piece of code that can change the ring, and looks at `revoked` first. So once
// `revoke` has had the mutex, nothing that came or comes through this lane reaches the ring any more.
#pragma once

#include "transport/link/handshake.h"
#include "transport/link/token.h"
#include "transport/types.h"

#include <lockstep/result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace lockstep::transport::tcp {

// The right of one holder to write the ring through one connection.
class LaneRight {
 public:
    LaneRight(const link::LaneToken& token, ReplicaId holder, Incarnation incarnation, Position base)
        : token_(token),
          holder_(holder),
          incarnation_(incarnation),
          base_(base),
          landed_(base.value),
          seen_(base.value) {}

    ReplicaId holder() const { return holder_; }
    Incarnation incarnation() const { return incarnation_; }
    Position base() const { return base_; }
    bool opened_by(const link::LaneToken& token) const { return link::same(token, token_); }

    // Protocol thread: ends the right, and closes the connection that uses it. Waits for at most one receive.
    void revoke();
    // Protocol thread: the end of what has landed; bytes at and past it may be changing.
    Position look();

    // Acceptor thread: a lock that is held if the right still stands; while it is, it does.
    std::unique_lock<std::mutex> enter();
    // Acceptor thread: the one connection that uses the right, by its descriptor; false if it is revoked or has (had)
    // one. `detach` before the descriptor is closed.
    bool attach(int descriptor);
    void detach();
    // Acceptor thread: publishes how far writes have landed. What was copied before is seen by who reads the ring
    // after `look`.
    void set_landed(Position landed) { landed_.store(landed.value, std::memory_order_release); }
    // Acceptor thread: how many bytes landed since the protocol thread last looked.
    std::uint64_t unseen() const {
        return landed_.load(std::memory_order_relaxed) - seen_.load(std::memory_order_relaxed);
    }

 private:
    const link::LaneToken token_;
    const ReplicaId holder_;
    const Incarnation incarnation_;
    const Position base_;
    std::mutex mutex_;
    std::atomic<bool> ending_{false};  // revoke waits for the mutex: a busy receiver gives way
    bool revoked_ = false;             // below: under mutex_
    bool used_ = false;
    int descriptor_ = -1;
    std::atomic<std::uint64_t> landed_;
    std::atomic<std::uint64_t> seen_;
};

class Gate {
 public:
    // Protocol thread; see Fabric.
    Result<LaneAddress> open(ReplicaId holder, Incarnation incarnation, Position base);
    // The same with a token that was drawn before, whose address the caller makes.
    Result<void> open(const link::LaneToken& token, ReplicaId holder, Incarnation incarnation, Position base);
    void revoke();
    Position landed() const;

    // Acceptor thread: the right that `hello` names by its token, attached to the connection `descriptor`; the error is
    // the refusal's text.
    Result<std::shared_ptr<LaneRight>> admit(const link::Hello& hello, int descriptor);

 private:
    std::mutex mutex_;                   // for right_: written by the protocol thread, copied by the acceptor thread
    std::shared_ptr<LaneRight> right_;
};

// The token in an address: its first bytes, whatever another transport says behind. The error: it is too short.
Result<link::LaneToken> token_of(const LaneAddress& address);

}  // namespace lockstep::transport::tcp
