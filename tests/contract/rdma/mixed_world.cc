#include "tests/contract/rdma/mixed_world.h"

#include <stdexcept>
#include <utility>

namespace lockstep::transport::contract {

template <class Opened>
MixedWorld::Member& MixedWorld::take(ReplicaId id, Opened opened) {
    if (!opened) throw std::runtime_error(opened.error().message());
    Member& member = members_[id];
    auto* fabric = opened.value().get();
    member.port = fabric->listen_port();
    member.set_peer_address = [fabric](ReplicaId peer, const std::string& host, std::uint16_t port) {
        fabric->set_peer_address(peer, host, port);
    };
    member.fabric = std::move(opened).value();
    return member;
}

Fabric& MixedWorld::start(const MemberOptions& options) {
    rdma::RdmaOptions own = rdma_options(options);
    own.fall_back = true;
    for (std::uint8_t id = 1; id <= kMembers; ++id) {
        if (ReplicaId{id} == options.id) continue;
        const auto peer = members_.find({id});
        own.peers.push_back({{id}, rdma_options({.id = {id}}).listen_host,
                             peer == members_.end() ? std::uint16_t{0} : peer->second.port});
    }
    const link::StationOptions& station = own;
    Member& mine = options.id == without_rdma_ ? take(options.id, tcp::TcpFabric::open(station))
                                               : take(options.id, rdma::RdmaFabric::open(own));
    for (auto& [id, peer] : members_)
        if (id != options.id) peer.set_peer_address(options.id, own.listen_host, mine.port);
    return *mine.fabric;
}

}  // namespace lockstep::transport::contract
