// The fabric over TCP (Boost.Asio). docs/transport.md says what it does on the wire and on which thread.
#pragma once

#include "transport/fabric.h"
#include "transport/link/station.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::transport::tcp {

using TcpPeer = link::PeerAddress;
using TcpOptions = link::StationOptions;

class TcpFabric : public Fabric {
 public:
    // Maps the ring, listens, and starts the acceptor thread; `poll` connects to the peers. Blocks for a look-up of
    // `listen_host`. The error names what is wrong in `options`, or what the system refused.
    static Result<std::unique_ptr<TcpFabric>> open(const TcpOptions& options);

    // The peer port that this replica listens on.
    virtual std::uint16_t listen_port() const = 0;
    // Where to reach `peer` (one of the options' peers) from now on. Protocol thread; does not block.
    virtual void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) = 0;
};

}  // namespace lockstep::transport::tcp
