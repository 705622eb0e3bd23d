#include "tests/unit/counter/test_client.h"

#include "tools/counter/resp.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace lockstep::counter {
namespace {

constexpr int kDeadlineMs = 20'000;

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

}  // namespace

// The socket that reserves the port is kept, bound and not listening, until this process ends: so the system gives the
// port to nobody who asks for any, and a server that names it and sets SO_REUSEADDR, as all of ours do, gets it.
std::uint16_t free_port() {
    const int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    EXPECT_EQ(setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(holder, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(holder, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
}

bool port_answers(std::uint16_t port) {
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port);
    const bool up = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    return up;
}

TestClient::TestClient(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << "cannot connect to port " << port;
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

TestClient::~TestClient() {
    if (socket_ >= 0) close(socket_);
}

TestClient::TestClient(TestClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}

void TestClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

bool TestClient::read_some() {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, kDeadlineMs) != 1) {
        ADD_FAILURE() << "no reply within " << kDeadlineMs << " ms; so far: " << received_;
        return false;
    }
    char bytes[16 * 1024];
    const ssize_t size = recv(socket_, bytes, sizeof bytes, 0);
    if (size <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(size));
    return true;
}

std::string TestClient::receive() {
    while (true) {
        const auto size = reply_bytes(received_);
        EXPECT_TRUE(size.has_value()) << "no RESP: " << received_;
        if (!size) return std::exchange(received_, {});
        if (*size > 0) {
            std::string reply = received_.substr(0, *size);
            received_.erase(0, *size);
            return reply;
        }
        if (!read_some()) return std::exchange(received_, {}) + "<closed>";
    }
}

std::string TestClient::receive(std::size_t replies) {
    std::string all;
    for (std::size_t i = 0; i < replies; ++i) all += receive();
    return all;
}

bool TestClient::closed() { return received_.empty() && !read_some() && received_.empty(); }

void TestClient::finish_sending() { shutdown(socket_, SHUT_WR); }

std::string request(std::initializer_list<std::string_view> args) {
    std::string bytes;
    append_array(bytes, args.size());
    for (const std::string_view arg : args) append_bulk(bytes, arg);
    return bytes;
}

}  // namespace lockstep::counter
