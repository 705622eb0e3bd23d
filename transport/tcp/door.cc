#include "transport/tcp/door.h"

namespace lockstep::transport::tcp {

Result<void> Door::let_in(const link::Hello& hello, link::Socket& socket, std::span<const std::byte> early,
                          const std::string& answer) {
    auto right = gate_.admit(hello, socket.native_handle());
    if (!right) return std::move(right).error();
    // A fresh socket takes it whole, or is broken and will say so.
    link::send_some(socket.native_handle(), answer);
    if (lane_) lane_->close("another lane has come");
    if (!bell_) bell_.emplace(socket.get_executor(), waker_, wakes_at_landing_);
    lane_ = std::make_shared<LaneConnection>(std::move(socket), std::move(right).value(), memory_, *bell_);
    lane_->start(early);
    return {};
}

void Door::close() {
    if (lane_) lane_->close("fabric ends");
    bell_.reset();
}

}  // namespace lockstep::transport::tcp
