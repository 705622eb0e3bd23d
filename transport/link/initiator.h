// What the connections that this replica opens to its peers share. All of it is the protocol thread's.
#pragma once

#include "transport/fabric.h"
#include "transport/link/handshake.h"
#include "transport/link/sockets.h"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::link {

struct Initiator {
    boost::asio::io_context& context;
    const Identity& self;
    std::span<const std::byte> ring;
    std::chrono::milliseconds handshake_timeout;
    std::vector<Event>& ready;   // events for the next return of `poll`
    // The address that connections go out from; none: the system's choice. So they take the network that the replica's
    // own address names, as RDMA does.
    std::optional<boost::asio::ip::address> source;
    // Looks a host name up; the outcome comes to ControlLink::looked_up.
    std::function<void(ReplicaId peer, const std::string& host, std::uint16_t port)> look_up;
    std::minstd_rand jitter{std::random_device{}()};
};

}  // namespace lockstep::transport::link
