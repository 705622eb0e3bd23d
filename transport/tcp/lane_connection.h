// The follower's end of its one incoming lane: receives frames into the ring and acknowledges them. Acceptor thread.
#pragma once

#include "transport/tcp/lane_receiver.h"
#include "transport/link/sockets.h"
#include "transport/tcp/landing_bell.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lockstep::transport::tcp {

class LaneConnection : public std::enable_shared_from_this<LaneConnection> {
 public:
    // `right` is attached to `socket`.
    LaneConnection(link::Socket socket, std::shared_ptr<LaneRight> right, const link::RingMemory& memory,
                   LandingBell& bell);

    // `early` are bytes of the lane's stream that came along with the hello.
    void start(std::span<const std::byte> early);
    void close(const std::string& why);
    bool closed() const { return closed_; }

 private:
    static constexpr std::size_t kStagingBytes = 16 * 1024;
    // What one turn receives straight into the ring, at most, before other connections get theirs (F8).
    static constexpr std::size_t kTurnBytes = 256 * 1024;

    void receive();
    // Lands the first `count` staged bytes and acknowledges; false if the lane is closed now.
    bool land(std::size_t count);
    // Receives the rest of an open frame straight into the ring, and what is behind it into the staging buffer; false
    // if there is nothing more to be had for now, or the lane is closed.
    bool receive_straight(std::size_t& turn_bytes);
    void acknowledge();

    link::Socket socket_;
    const std::shared_ptr<LaneRight> right_;
    LandingBell& bell_;
    LaneReceiver receiver_;
    std::array<std::byte, kStagingBytes> staging_;
    std::array<char, sizeof(std::uint64_t)> ack_{};  // the count under way to the holder ...
    std::size_t ack_left_ = 0;                       // ... and how many bytes of it are not sent yet
    std::uint64_t acknowledged_ = 0;
    bool ack_waits_ = false;                         // the socket takes no more for now
    bool closed_ = false;
};

}  // namespace lockstep::transport::tcp
