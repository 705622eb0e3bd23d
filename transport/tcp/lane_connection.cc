#include "transport/tcp/lane_connection.h"

#include "transport/logger.h"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cstring>

namespace lockstep::transport::tcp {

LaneConnection::LaneConnection(link::Socket socket, std::shared_ptr<LaneRight> right, const link::RingMemory& memory,
                               LandingBell& bell)
    : socket_(std::move(socket)), right_(std::move(right)), bell_(bell), receiver_(memory, right_->base()) {}

void LaneConnection::start(std::span<const std::byte> early) {
    static_assert(link::kMaxHandshakeBytes <= kStagingBytes);
    std::copy(early.begin(), early.end(), staging_.begin());
    if (!early.empty() && !land(early.size())) return;
    receive();
}

void LaneConnection::receive() {
    // The first bytes of a turn come through the staging buffer, whose receive may run at any time: it cannot touch the
    // ring. One system call to wait, one to receive.
    socket_.async_read_some(boost::asio::buffer(staging_),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
                                if (self->closed_) return;
                                if (error) return self->close(error.message());
                                if (!self->land(count)) return;
                                std::size_t turn_bytes = 0;
                                while (!self->receiver_.rest().empty() && turn_bytes < kTurnBytes)
                                    if (!self->receive_straight(turn_bytes)) break;
                                if (!self->closed_) self->receive();
                            });
}

bool LaneConnection::land(std::size_t count) {
    Result<void> taken;
    {
        const auto lock = right_->enter();
        if (!lock) {
            close("revoked");
            return false;
        }
        taken = receiver_.take(std::span(staging_).first(count));
        right_->set_landed(receiver_.landed());  // sound frames before a bad one have landed
    }
    if (!taken) {
        logger().error("lane of r{} closed: {}", right_->holder().value, taken.error().message());
        close("a frame makes no sense");
        return false;
    }
    acknowledge();
    if (right_->unseen() > 0) bell_.landed(right_);
    return !closed_;
}

bool LaneConnection::receive_straight(std::size_t& turn_bytes) {
    link::Moved moved;
    std::size_t straight = 0;
    {
        // F3: held over the receive itself, which writes the ring.
        const auto lock = right_->enter();
        if (!lock) {
            close("revoked");
            return false;
        }
        const std::span<std::byte> rest = receiver_.rest();
        const iovec pieces[] = {{rest.data(), rest.size()}, {staging_.data(), staging_.size()}};
        moved = link::receive_some(socket_.native_handle(), pieces);
        straight = std::min(moved.bytes, rest.size());
        receiver_.took(straight);
    }
    if (moved.would_block()) return false;
    if (moved.error != 0 || moved.bytes == 0) {
        close(moved.error != 0 ? std::strerror(moved.error) : "end of stream");
        return false;
    }
    turn_bytes += moved.bytes;
    return land(moved.bytes - straight);
}

void LaneConnection::acknowledge() {
    while (!ack_waits_ && (ack_left_ > 0 || acknowledged_ != receiver_.count())) {
        if (ack_left_ == 0) {
            acknowledged_ = receiver_.count();
            std::memcpy(ack_.data(), &acknowledged_, ack_.size());
            ack_left_ = ack_.size();
        }
        const link::Moved moved =
            link::send_some(socket_.native_handle(), {ack_.data() + ack_.size() - ack_left_, ack_left_});
        if (moved.would_block()) {
            ack_waits_ = true;
            socket_.async_wait(link::Socket::wait_write,
                               [self = shared_from_this()](const boost::system::error_code& error) {
                                   self->ack_waits_ = false;
                                   if (!error && !self->closed_) self->acknowledge();
                               });
            return;
        }
        if (moved.error != 0) return close(std::strerror(moved.error));
        ack_left_ -= moved.bytes;
    }
}

void LaneConnection::close(const std::string& why) {
    if (closed_) return;
    closed_ = true;
    logger().debug("lane of r{} closed: {}", right_->holder().value, why);
    right_->detach();
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace lockstep::transport::tcp
