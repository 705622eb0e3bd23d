// RDMA fabrics: in the lab each member has an address and a device of its own; on a machine with a card all share it.
#pragma once

#include "tests/contract/world.h"
#include "transport/rdma/fabric.h"

#include <lockstep/options.h>

#include <map>
#include <memory>
#include <string>

namespace lockstep::transport::contract {

// Why there is no RDMA to test with here; empty if there is.
std::string why_no_rdma();

// The options of a member, but for its peers' ports.
rdma::RdmaOptions rdma_options(const MemberOptions& options);

class RdmaWorld : public World {
 public:
    explicit RdmaWorld(Polling polling = Polling::blocking) : polling_(polling) {}

    Fabric& start(const MemberOptions& options) override;
    void kill(ReplicaId member) override { fabrics_.erase(member); }
    rdma::RdmaFabric& fabric(ReplicaId member) { return *fabrics_.at(member); }

 private:
    Polling polling_;
    std::map<ReplicaId, std::unique_ptr<rdma::RdmaFabric>> fabrics_;
};

}  // namespace lockstep::transport::contract
