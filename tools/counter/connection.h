// One TCP connection with its two buffers; sessions, links and upstreams build on it.
#pragma once

#include "tools/counter/buffer.h"
#include "tools/counter/request.h"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::counter {

// "ip:port" for people; IPv6 in brackets.
std::string format_endpoint(const boost::asio::ip::tcp::endpoint& endpoint);

// Threads: the server's only. Always owned by a shared_ptr; operations under way keep it alive, `close` ends them.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
    using Socket = boost::asio::ip::tcp::socket;

    explicit Connection(Socket socket) : socket_(std::move(socket)) {}
    virtual ~Connection() = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Drops the connection at once. `on_closed` runs, once.
    void close();
    bool closed() const { return closed_; }
    // Closes after what is in the output has been sent; nothing more is read.
    void close_when_sent();
    // Since when the peer has taken none of the output that waits for it; none while nothing waits.
    bool stalled_since(Clock::time_point& since) const;

 protected:
    // More input is there. `read_more` has to be called again to get the next.
    virtual void on_input() = 0;
    // The peer will send no more.
    virtual void on_end() = 0;
    // Some output has been sent and `output_bytes` has gone down.
    virtual void on_sent() {}
    virtual void on_closed() {}

    // Makes the socket ready for use: call once, when it is connected.
    void prepare();
    // Asks for input; once at a time, further calls change nothing.
    void read_more();
    InputBuffer& input() { return input_; }
    // Append here, then `flush`.
    std::string& output() { return output_; }
    void flush();
    // Not yet taken by the system.
    std::size_t output_bytes() const { return output_.size() + sending_.size() - sent_; }
    // Taken by the system since the connection began: what lies behind this many bytes has certainly not arrived.
    std::uint64_t bytes_taken() const { return taken_; }
    Socket& socket() { return socket_; }
    // Hands the socket over to another object; this one is closed without a call of `on_closed`.
    Socket release();

 private:
    void send_rest();
    void took(std::size_t bytes);

    Socket socket_;
    InputBuffer input_;
    std::string output_;         // gathers while `sending_` is on its way
    std::string sending_;
    std::size_t sent_ = 0;       // of `sending_`
    std::uint64_t taken_ = 0;
    Clock::time_point progress_; // when output was last taken, or began to wait
    bool reading_ = false;
    bool writing_ = false;
    bool closing_ = false;
    bool closed_ = false;
};

}  // namespace lockstep::counter
