// What all sockets of the TCP transport have in common.
#pragma once

#include <lockstep/result.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/uio.h>

namespace lockstep::transport::link {

using Socket = boost::asio::ip::tcp::socket;
using Endpoint = boost::asio::ip::tcp::endpoint;

// How long a peer's machine may stay silent (no acknowledgement, no answer to keepalive probes) before the system
// breaks a connection to it. A peer's process that died is noticed at once, by the reset that its machine sends.
inline constexpr int kSilenceMs = 3000;

// No delay of small segments, and the above. Errors are left out: a connection without these works, only worse.
void tune(int descriptor);

// An unconnected socket that child processes do not inherit; bound to `source` if that is of the peer's kind.
Result<Socket> make_socket(boost::asio::io_context& context, const Endpoint& peer,
                           const std::optional<boost::asio::ip::address>& source);

// How much a call that does not block has moved; `error` is an errno, 0 if it went well. 0 bytes without an error is
// the end of the stream (receive only).
struct Moved {
    std::size_t bytes = 0;
    int error = 0;
    bool would_block() const;
};
Moved send_some(int descriptor, std::span<const iovec> pieces);
Moved send_some(int descriptor, std::string_view bytes);
Moved receive_some(int descriptor, std::span<const iovec> pieces);

// Whether this error of a connection says that the process at the other end is gone (its machine answered that nobody
// is there), rather than that nothing was heard.
bool suggests_death(int error);

// "127.0.0.1:7001", "[::1]:7001"
std::string to_string(const Endpoint& endpoint);

}  // namespace lockstep::transport::link
