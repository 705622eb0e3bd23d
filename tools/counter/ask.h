// One question to a server that speaks Redis' protocol, by whoever can wait for the answer.
#pragma once

#include <lockstep/result.h>

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <string>

namespace lockstep::counter {

// Asks one question on a connection of its own; blocks for at most `patience`. The reply as bytes, or why there is
// none.
Result<std::string> ask_once(const boost::asio::ip::tcp::endpoint& server, const std::string& request,
                             std::chrono::milliseconds patience);

}  // namespace lockstep::counter
