// The fabric over TCP (Boost.Asio). docs/transport.md says what it does on the wire and on which thread.
#pragma once

#include "transport/fabric.h"

#include <lockstep/options.h>
#include <lockstep/result.h>
#include <lockstep/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::transport::tcp {

struct TcpPeer {
    ReplicaId id;
    std::string host;                          // an address or a name
    std::uint16_t port = 0;                    // 0: not known yet, see set_peer_address
};

struct TcpOptions {
    std::uint64_t cluster_id = 0;              // not 0; the handshake refuses another
    ReplicaId id;
    Incarnation incarnation;                   // of this life; not 0
    std::uint64_t ring_bytes = 0;              // a power of two, at least a page; the handshake refuses another
    std::vector<TcpPeer> peers;                // without this replica; at most 254
    std::string listen_host = "127.0.0.1";
    std::uint16_t listen_port = 0;             // 0: the system picks one, see listen_port()
    Polling polling = Polling::blocking;
    std::uint32_t spin_us = 50;                // for Polling::adaptive
    std::chrono::milliseconds handshake_timeout{1000};  // to connect and be answered, and for a stranger to say hello
};

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
