#include "transport/rdma/incoming.h"

#include "log/check.h"
#include "transport/link/token.h"
#include "transport/logger.h"

#include <utility>

namespace lockstep::transport::rdma {

Result<LaneAddress> IncomingLane::open(ReplicaId holder, Incarnation incarnation) {
    const std::string what = "cannot open a lane for r" + std::to_string(holder.value);
    if (right_)
        return Error(what + ": the lane of r" + std::to_string(right_->holder.value) +
                     " is still open: revoke it first");
    auto token = link::random_token();
    if (!token) return std::move(token).error();
    auto pair = stock_.take();
    if (!pair) return std::move(pair).error().within(what);
    auto right = std::make_shared<Right>();
    right->token = token.value();
    right->holder = holder;
    right->incarnation = incarnation;
    right->pair = std::move(pair).value();
    const LaneAddress address = encode(LaneDoorplate{right->token, right->pair->address(), ring_});
    const std::lock_guard lock(mutex_);
    right_ = std::move(right);
    return address;
}

void IncomingLane::admit(const link::Caller& caller, const LaneCall& call, const Workers::Strand& strand) {
    std::shared_ptr<Right> right;
    {
        const std::lock_guard lock(mutex_);
        right = right_;
    }
    // One text for a token that never was and one that was revoked: who guesses learns nothing.
    if (!right || !link::same(right->token, call.token))
        return caller.reply(encode(Refused{"this token opens no lane: it was revoked, or never given out"}));
    if (right->holder != caller.peer || right->incarnation != caller.incarnation)
        return caller.reply(encode(Refused{"this lane belongs to another replica, or another life of it"}));
    {
        const std::lock_guard lock(right->mutex);
        if (std::exchange(right->used, true))
            return caller.reply(encode(Refused{"this token is used up: it opens one connection, once"}));
        right->caller = caller;
    }
    post(strand, [this, right, caller, address = call.caller] { connect(right, caller, address); });
}

void IncomingLane::connect(const std::shared_ptr<Right>& right, const link::Caller& caller,
                           const PairAddress& address) {
    std::shared_ptr<QueuePair> pair;
    {
        const std::lock_guard lock(right->mutex);
        if (right->revoked) return;
        pair = right->pair;
    }
    Result<void> done = pair->reach(address);
    {
        const std::lock_guard lock(right->mutex);
        if (right->revoked) return;
        if (done) done = pair->arm(IBV_ACCESS_REMOTE_WRITE);
        right->armed = done.ok();
    }
    caller.reply(done ? encode(LaneReply{}) : encode(Refused{done.error().message()}));
}

void IncomingLane::revoke() {
    std::shared_ptr<Right> right;
    {
        const std::lock_guard lock(mutex_);
        right = std::exchange(right_, nullptr);
    }
    if (!right) return;
    const std::lock_guard lock(right->mutex);
    right->revoked = true;
    if (right->armed) {
        const Result<void> stopped = right->pair->stop();
        // A fence that may not hold must not be taken for one.
        if (!stopped)
            logger().critical("the fence of r{}'s lane fails: {}", right->holder.value, stopped.error().message());
        LOCKSTEP_CHECK(stopped.ok());
        logger().debug("the queue pair of r{}'s lane is stopped", right->holder.value);
        push_writes_out(*right->pair);
        logger().debug("what r{} wrote is in memory", right->holder.value);
        right->caller.reply(encode(LaneRevoked{}));
    }
    stock_.bury(std::exchange(right->pair, nullptr));
}

void IncomingLane::push_writes_out(QueuePair& pair) {
    if (!loopback_) {
        if (auto made = Loopback::make(device_, memory_)) loopback_ = std::move(made).value();
    }
    Result<void> pushed = loopback_ ? loopback_->push_writes_out() : Result<void>(Error("there is no loopback"));
    if (pushed) return;
    // A port that is down does not even reach itself. The queue pair has ended; this is the second line.
    logger().warn("after the fence of queue pair {}: {}", pair.number(), pushed.error().message());
    loopback_.reset();
}

}  // namespace lockstep::transport::rdma
