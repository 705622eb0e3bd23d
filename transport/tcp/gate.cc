#include "transport/tcp/gate.h"

#include <cstring>
#include <limits>
#include <utility>

#include <sys/socket.h>

namespace lockstep::transport::tcp {

void LaneRight::revoke() {
    ending_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    revoked_ = true;
    // Only shut down here: the acceptor thread closes what it owns, when it sees the end of the stream.
    if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
    descriptor_ = -1;
}

Position LaneRight::look() {
    const std::uint64_t landed = landed_.load(std::memory_order_acquire);
    seen_.store(landed, std::memory_order_relaxed);
    return {landed};
}

std::unique_lock<std::mutex> LaneRight::enter() {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (ending_.load(std::memory_order_relaxed)) return lock;
    lock.lock();
    if (revoked_) lock.unlock();
    return lock;
}

bool LaneRight::attach(int descriptor) {
    const std::lock_guard lock(mutex_);
    if (revoked_ || used_) return false;
    used_ = true;
    descriptor_ = descriptor;
    return true;
}

void LaneRight::detach() {
    const std::lock_guard lock(mutex_);
    descriptor_ = -1;
}

Result<LaneAddress> Gate::open(ReplicaId holder, Incarnation incarnation, Position base) {
    auto token = link::random_token();
    if (!token) return std::move(token).error();
    if (auto opened = open(token.value(), holder, incarnation, base); !opened) return std::move(opened).error();
    LaneAddress address;
    static_assert(sizeof(link::LaneToken) <= LaneAddress::kMaxBytes);
    std::memcpy(address.bytes.data(), token.value().data(), sizeof(link::LaneToken));
    address.size = sizeof(link::LaneToken);
    return address;
}

Result<void> Gate::open(const link::LaneToken& token, ReplicaId holder, Incarnation incarnation, Position base) {
    if (right_)
        return Error("cannot open a lane for r" + std::to_string(holder.value) + ": the lane of r" +
                     std::to_string(right_->holder().value) + " is still open: revoke it first");
    auto right = std::make_shared<LaneRight>(token, holder, incarnation, base);
    const std::lock_guard lock(mutex_);
    right_ = std::move(right);
    return {};
}

void Gate::revoke() {
    if (!right_) return;
    right_->revoke();
    const std::lock_guard lock(mutex_);
    right_.reset();
}

Position Gate::landed() const {
    return right_ ? right_->look() : Position{std::numeric_limits<std::uint64_t>::max()};
}

Result<std::shared_ptr<LaneRight>> Gate::admit(const link::Hello& hello, int descriptor) {
    std::shared_ptr<LaneRight> right;
    {
        const std::lock_guard lock(mutex_);
        right = right_;
    }
    // One text for a token that never was and one that was revoked: who guesses learns nothing.
    const Error unknown("this token opens no lane: it was revoked, or never given out");
    if (!right || !right->opened_by(hello.token)) return unknown;
    if (right->holder() != hello.sender || right->incarnation() != hello.incarnation)
        return Error("this lane belongs to another replica, or another life of it");
    if (!right->attach(descriptor)) return Error("this token is used up: it opens one connection, once");
    return right;
}

Result<link::LaneToken> token_of(const LaneAddress& address) {
    link::LaneToken token;
    if (address.size < token.size() || address.size > LaneAddress::kMaxBytes)
        return Error("a lane address of " + std::to_string(address.size) + " bytes is not one of the TCP transport");
    std::memcpy(token.data(), address.bytes.data(), token.size());
    return token;
}

}  // namespace lockstep::transport::tcp
