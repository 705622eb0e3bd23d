// TCP fabrics on loopback ports that the system picks.
#pragma once

#include "tests/contract/world.h"
#include "transport/tcp/fabric.h"

#include <lockstep/options.h>

#include <map>
#include <memory>

namespace lockstep::transport::contract {

class TcpWorld : public World {
 public:
    explicit TcpWorld(Polling polling = Polling::blocking) : polling_(polling) {}

    Fabric& start(const MemberOptions& options) override;
    void kill(ReplicaId member) override { fabrics_.erase(member); }
    tcp::TcpFabric& fabric(ReplicaId member) { return *fabrics_.at(member); }

 private:
    Polling polling_;
    std::map<ReplicaId, std::unique_ptr<tcp::TcpFabric>> fabrics_;
};

}  // namespace lockstep::transport::contract
