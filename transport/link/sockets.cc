#include "transport/link/sockets.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::transport::link {
namespace {

void set(int descriptor, int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
}

template <class Call>
Moved moved(Call&& call) {
    for (;;) {
        const ssize_t count = call();
        if (count >= 0) return {static_cast<std::size_t>(count), 0};
        if (errno != EINTR) return {0, errno};
    }
}

}  // namespace

void tune(int descriptor) {
    set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
    // Keepalive probes where nothing is under way; TCP_USER_TIMEOUT bounds the silence for these too.
    set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 1);
    set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Result<Socket> make_socket(boost::asio::io_context& context, const Endpoint& peer,
                           const std::optional<boost::asio::ip::address>& source) {
    const int descriptor = ::socket(peer.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (descriptor < 0) return Error("cannot make a socket: " + std::string(std::strerror(errno)));
    tune(descriptor);
    set(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // the port is chosen when it is known who the peer is
    Socket socket(context);
    boost::system::error_code error;
    socket.assign(peer.protocol(), descriptor, error);
    if (error) {
        ::close(descriptor);
        return Error("cannot watch a socket: " + error.message());
    }
    if (source && source->is_v4() == peer.address().is_v4() && !peer.address().is_loopback())
        socket.bind(Endpoint(*source, 0), error);
    if (error) return Error("cannot bind a socket to " + source->to_string() + ": " + error.message());
    return socket;
}

bool Moved::would_block() const { return error == EAGAIN || error == EWOULDBLOCK; }

Moved send_some(int descriptor, std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg does not write it
    message.msg_iovlen = pieces.size();
    return moved([&] { return ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Moved send_some(int descriptor, std::string_view bytes) {
    return moved([&] { return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Moved receive_some(int descriptor, std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());  // recvmsg does not write the vector itself
    message.msg_iovlen = pieces.size();
    return moved([&] { return ::recvmsg(descriptor, &message, MSG_DONTWAIT); });
}

bool suggests_death(int error) { return error == ECONNREFUSED || error == ECONNRESET || error == EPIPE; }

std::string to_string(const Endpoint& endpoint) {
    std::ostringstream out;
    out << endpoint;
    return out.str();
}

}  // namespace lockstep::transport::link
