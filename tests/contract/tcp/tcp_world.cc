#include "tests/contract/tcp/tcp_world.h"

#include "tests/contract/fixture.h"

#include <stdexcept>

namespace lockstep::transport::contract {

Fabric& TcpWorld::start(const MemberOptions& options) {
    tcp::TcpOptions tcp;
    tcp.cluster_id = options.cluster_id;
    tcp.id = options.id;
    tcp.incarnation = options.incarnation;
    tcp.ring_bytes = options.ring_bytes;
    tcp.polling = polling_;
    for (std::uint8_t id = 1; id <= kMembers; ++id) {
        if (ReplicaId{id} == options.id) continue;
        const auto peer = fabrics_.find({id});
        tcp.peers.push_back(
            {{id}, "127.0.0.1", peer == fabrics_.end() ? std::uint16_t{0} : peer->second->listen_port()});
    }
    auto opened = tcp::TcpFabric::open(tcp);
    if (!opened) throw std::runtime_error(opened.error().message());
    auto& mine = fabrics_[options.id] = std::move(opened).value();
    for (auto& [id, peer] : fabrics_)
        if (id != options.id) peer->set_peer_address(options.id, "127.0.0.1", mine->listen_port());
    return *mine;
}

INSTANTIATE_TEST_SUITE_P(tcp, Contract,
                         testing::Values(Kind{"blocking", [] { return std::make_unique<TcpWorld>(); }},
                                         Kind{"adaptive", [] { return std::make_unique<TcpWorld>(Polling::adaptive); }},
                                         Kind{"spin", [] { return std::make_unique<TcpWorld>(Polling::spin); }}),
                         kind_name);

}  // namespace lockstep::transport::contract
