// Tells the protocol thread, now and then, that bytes have landed in its ring.
#pragma once

#include "transport/link/waker.h"
#include "transport/tcp/gate.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace lockstep::transport::tcp {

// Where a commit does not need the follower's protocol thread, it is not woken for each write, but kLandingDelay after
// a landing at the latest, or as soon as kLandingBytes have gathered that it has not looked at. Acceptor thread only.
class LandingBell {
 public:
    static constexpr auto kLandingDelay = std::chrono::microseconds(500);
    static constexpr std::uint64_t kLandingBytes = 256 * 1024;

    // `at_once`: it is woken for each write, for commits wait for it.
    LandingBell(const boost::asio::any_io_executor& executor, link::Waker& waker, bool at_once)
        : timer_(executor), waker_(waker), at_once_(at_once) {}

    void landed(const std::shared_ptr<LaneRight>& right) {
        if (at_once_ || right->unseen() >= kLandingBytes) return waker_.wake();
        if (armed_) return;
        armed_ = true;
        timer_.expires_after(kLandingDelay);
        timer_.async_wait([this, right](const boost::system::error_code& error) {
            armed_ = false;
            if (!error && right->unseen() > 0) waker_.wake();
        });
    }

 private:
    boost::asio::steady_timer timer_;
    link::Waker& waker_;
    const bool at_once_;
    bool armed_ = false;
};

}  // namespace lockstep::transport::tcp
