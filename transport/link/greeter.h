// A connection that has not said (or proved) what it is yet. Acceptor thread.
#pragma once

#include "transport/link/handshake.h"
#include "transport/link/sockets.h"

#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace lockstep::transport::link {

class Greeter : public std::enable_shared_from_this<Greeter> {
 public:
    // Decides about a hello: takes over `socket` and `early` (bytes behind the hello), or returns a refusal. It answers
    // an accepted hello itself.
    using Decide = std::function<Result<void>(const Hello& hello, Socket& socket, std::span<const std::byte> early)>;
    // Called once, when the greeter has handed over or closed its connection.
    using Gone = std::function<void(Greeter&)>;

    Greeter(Socket socket, std::chrono::milliseconds deadline, Decide decide, Gone gone);

    void start();
    void close();

 private:
    void receive();
    void take(std::size_t count);
    void refuse(const std::string& text);
    // Reads and drops until the other end closes, so that the refusal is not lost in a reset.
    void drain();

    Socket socket_;
    boost::asio::steady_timer timer_;
    const std::chrono::milliseconds deadline_;
    Decide decide_;
    Gone gone_;
    std::array<std::byte, kMaxHandshakeBytes> bytes_;
    std::size_t count_ = 0;
    bool closed_ = false;
};

}  // namespace lockstep::transport::link
