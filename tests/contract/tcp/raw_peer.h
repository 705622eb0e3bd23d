// A peer that speaks to a peer port byte by byte, to say what no fabric would say.
#pragma once

#include "transport/link/handshake.h"
#include "transport/link/frames.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::transport::contract {

template <class Header>
std::string_view bytes_of(const Header& header) {
    return {reinterpret_cast<const char*>(&header), sizeof header};
}

class RawPeer {
 public:
    explicit RawPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int at_once = 1;
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
        connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    }
    RawPeer(RawPeer&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)),
          connected_(other.connected_),
          received_(std::move(other.received_)) {}
    ~RawPeer() {
        if (socket_ >= 0) ::close(socket_);
    }

    bool connected() const { return connected_; }

    // False once the other end has closed.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (count <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    }

    // The next `count` bytes; fewer if the other end closes before, or a long time passes.
    std::string receive(std::size_t count) {
        while (received_.size() < count && receive_more()) {
        }
        const std::string out = received_.substr(0, count);
        received_.erase(0, count);
        return out;
    }

    // Whether the other end closes the connection, and says no more before.
    bool is_closed() {
        while (receive_more()) {
        }
        return ended_;
    }

    // The answer to a hello; refused with a text of the test's if there is none.
    link::Answer answer() {
        for (;;) {
            auto parsed = link::parse_answer(std::as_bytes(std::span(received_)));
            if (!parsed) return {false, {}, {}, "no answer: " + parsed.error().message()};
            if (parsed.value()) {
                received_.erase(0, parsed.value()->bytes);
                return parsed.value()->message;
            }
            if (!receive_more()) return {false, {}, {}, "no answer, closed"};
        }
    }

 private:
    bool receive_more() {
        pollfd readable{socket_, POLLIN, 0};
        if (ended_ || ::poll(&readable, 1, 10'000) != 1) return false;
        char bytes[4096];
        const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
        ended_ = count <= 0;
        if (count > 0) received_.append(bytes, static_cast<std::size_t>(count));
        return count > 0;
    }

    int socket_;
    bool connected_ = false;
    bool ended_ = false;
    std::string received_;
};

}  // namespace lockstep::transport::contract
