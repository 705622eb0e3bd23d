// What the connections that peers have opened to this replica act on.
#pragma once

#include "transport/tcp/gate.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/mailbox.h"
#include "transport/tcp/memory.h"
#include "transport/tcp/waker.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace lockstep::transport::tcp {

// All of it outlives the acceptor thread.
struct Target {
    const Identity& self;
    const RingMemory& memory;
    const BoardCell& board;
    Gate& gate;
    Mailbox& mailbox;
    Waker& waker;
};

// Tells the protocol thread, now and then, that bytes have landed in its ring: a commit does not need it, so it is not
// woken for each write. At the latest kLandingDelay after a landing, or as soon as kLandingBytes have gathered that it
// has not looked at. Acceptor thread only.
class LandingBell {
 public:
    static constexpr auto kLandingDelay = std::chrono::microseconds(500);
    static constexpr std::uint64_t kLandingBytes = 256 * 1024;

    LandingBell(boost::asio::io_context& context, Waker& waker) : timer_(context), waker_(waker) {}

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
    Waker& waker_;
    bool armed_ = false;
};

}  // namespace lockstep::transport::tcp
