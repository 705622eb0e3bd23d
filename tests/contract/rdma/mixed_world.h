// Members that take RDMA where they can, and one that has none.
#pragma once

#include "tests/contract/rdma/rdma_world.h"
#include "transport/tcp/fabric.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace lockstep::transport::contract {

class MixedWorld : public World {
 public:
    // `without_rdma` has none; 0: all have it.
    explicit MixedWorld(ReplicaId without_rdma) : without_rdma_(without_rdma) {}

    Fabric& start(const MemberOptions& options) override;
    void kill(ReplicaId member) override { members_.erase(member); }

 private:
    struct Member {
        std::unique_ptr<Fabric> fabric;
        std::uint16_t port = 0;
        std::function<void(ReplicaId, const std::string&, std::uint16_t)> set_peer_address;
    };
    template <class Opened>
    Member& take(ReplicaId id, Opened opened);

    const ReplicaId without_rdma_;
    std::map<ReplicaId, Member> members_;
};

}  // namespace lockstep::transport::contract
