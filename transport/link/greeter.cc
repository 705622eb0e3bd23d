#include "transport/link/greeter.h"

#include "transport/logger.h"

#include <boost/asio/buffer.hpp>

namespace lockstep::transport::link {

Greeter::Greeter(Socket socket, std::chrono::milliseconds deadline, Decide decide, Gone gone)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), deadline_(deadline), decide_(std::move(decide)),
      gone_(std::move(gone)) {}

void Greeter::start() {
    timer_.expires_after(deadline_);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error) self->close();
    });
    receive();
}

void Greeter::receive() {
    socket_.async_read_some(boost::asio::buffer(bytes_.data() + count_, bytes_.size() - count_),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
                                if (self->closed_) return;
                                if (error) return self->close();
                                self->take(count);
                            });
}

void Greeter::take(std::size_t count) {
    count_ += count;
    const std::span<const std::byte> there = std::span(bytes_).first(count_);
    auto parsed = parse_hello(there);
    if (!parsed) {
        logger().debug("peer port: {}", parsed.error().message());
        return close();
    }
    if (!parsed.value()) return receive();  // there is room: a hello that does not fit is an error above
    auto decided = decide_(parsed.value()->message, socket_, there.subspan(parsed.value()->bytes));
    if (!decided) return refuse(decided.error().message());
    close();
}

void Greeter::refuse(const std::string& text) {
    send_some(socket_.native_handle(), encode(Answer{false, {}, {}, text}));
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    drain();
}

void Greeter::drain() {
    socket_.async_read_some(boost::asio::buffer(bytes_),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                                if (self->closed_) return;
                                if (error) return self->close();
                                self->drain();
                            });
}

void Greeter::close() {
    if (closed_) return;
    closed_ = true;
    timer_.cancel();
    boost::system::error_code ignored;
    socket_.close(ignored);
    gone_(*this);
}

}  // namespace lockstep::transport::link
