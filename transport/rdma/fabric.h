// The fabric over RDMA (libibverbs). docs/transport.md says which queue pairs, domains and threads there are.
#pragma once

#include "transport/fabric.h"
#include "transport/link/station.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::transport::rdma {

struct RdmaOptions : link::StationOptions {
    std::string device;    // empty: the one that has the address of `listen_host`
    int port = 0;          // 0: any
    int gid_index = -1;    // -1: the RoCE v2 entry of the address of `listen_host`
    bool fall_back = false;  // a peer that RDMA does not reach is reached over TCP, until it does
};

// Whether this build has RDMA; why not, if not.
Result<void> available();

class RdmaFabric : public Fabric {
 public:
    // Chooses a device and port, registers the memory, makes the first queue pairs, listens, and starts its threads;
    // `poll` connects to the peers. Blocks for a look-up of `listen_host` and for the device. The error names what is
    // wrong in `options`, what the system refused, or what there is instead of a fitting device.
    static Result<std::unique_ptr<RdmaFabric>> open(const RdmaOptions& options);

    // The peer port that this replica listens on.
    virtual std::uint16_t listen_port() const = 0;
    // Where to reach `peer` (one of the options' peers) from now on. Protocol thread; does not block.
    virtual void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) = 0;
};

}  // namespace lockstep::transport::rdma
