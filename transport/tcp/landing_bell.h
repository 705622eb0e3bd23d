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

// A commit does not need the follower's protocol thread, so it is not woken for each write. At the latest kLandingDelay
// after a landing, or as soon as kLandingBytes have gathered that it has not looked at. Acceptor thread only.
class LandingBell {
 public:
    static constexpr auto kLandingDelay = std::chrono::microseconds(500);
    static constexpr std::uint64_t kLandingBytes = 256 * 1024;

    LandingBell(const boost::asio::any_io_executor& executor, link::Waker& waker) : timer_(executor), waker_(waker) {}

    void landed(const std::shared_ptr<LaneRight>& right) {
        if (right->unseen() >= kLandingBytes) return waker_.wake();
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
    bool armed_ = false;
};

}  // namespace lockstep::transport::tcp
