#include "tools/counter/connection.h"

#include "tools/counter/limits.h"

#include <boost/asio/buffer.hpp>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;

std::string format_endpoint(const asio::ip::tcp::endpoint& endpoint) {
    const std::string ip = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? "[" + ip + "]" : ip) + ":" + std::to_string(endpoint.port());
}

void Connection::prepare() {
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
}

void Connection::close() {
    if (closed_) return;
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
    on_closed();
}

Connection::Socket Connection::release() {
    closed_ = true;
    return std::move(socket_);
}

void Connection::close_when_sent() {
    closing_ = true;
    flush();
}

bool Connection::stalled_since(Clock::time_point& since) const {
    since = progress_;
    return writing_;
}

void Connection::read_more() {
    if (reading_ || closed_ || closing_) return;
    reading_ = true;
    char* room = input_.room(kReadBytes);
    socket_.async_read_some(asio::buffer(room, input_.room_left()),
                            [this, self = shared_from_this()](error_code error, std::size_t bytes) {
                                reading_ = false;
                                if (closed_ || closing_) return;
                                if (error) return on_end();
                                input_.added(bytes);
                                on_input();
                            });
}

void Connection::took(std::size_t bytes) {
    taken_ += bytes;
    progress_ = Clock::now();
}

void Connection::flush() {
    if (closed_ || writing_) return;
    if (!output_.empty()) {
        error_code error;
        const std::size_t bytes = socket_.write_some(asio::buffer(output_), error);
        if (error && error != asio::error::would_block) return close();
        took(bytes);
        if (bytes < output_.size()) {
            // The peer is slow: what is left goes when it has room.
            sending_.clear();
            sending_.swap(output_);
            sent_ = bytes;
            writing_ = true;
            return send_rest();
        }
        clear_and_trim(output_);
    }
    if (!closing_) return;
    // Says goodbye in order: the peer gets all that was sent before it sees the end.
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    close();
}

void Connection::send_rest() {
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [this, self = shared_from_this()](error_code error, std::size_t bytes) {
                                 if (closed_) return;
                                 if (error) return close();
                                 took(bytes);
                                 sent_ += bytes;
                                 if (sent_ < sending_.size()) return send_rest();
                                 writing_ = false;
                                 clear_and_trim(sending_);
                                 sent_ = 0;
                                 flush();
                                 if (!closed_) on_sent();
                             });
}

}  // namespace lockstep::counter
