#include "tests/contract/rdma/rdma_world.h"

#include "transport/rdma/choice.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>

namespace lockstep::transport::contract {
namespace {

struct Place {
    std::string address;
    std::string device;
};

std::vector<std::string> words_of(const char* text) {
    std::istringstream in(text != nullptr ? text : "");
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

// In the lab what it says; else the first address of a RoCE v2 entry of any device, for all members.
Place place_of(ReplicaId id) {
    const auto addresses = words_of(std::getenv("LOCKSTEP_LAB_ADDRESSES"));
    const auto devices = words_of(std::getenv("LOCKSTEP_LAB_DEVICES"));
    if (id.value <= addresses.size() && addresses.size() == devices.size())
        return {addresses[id.value - 1u], devices[id.value - 1u]};
    for (const rdma::DeviceInfo& device : rdma::survey())
        for (const rdma::PortInfo& port : device.ports)
            if (port.active) return {"127.0.0.1", device.name};
    return {};
}

}  // namespace

std::string why_no_rdma() {
    if (auto built = rdma::available(); !built) return built.error().message();
    if (place_of({1}).device.empty()) return "no active RDMA port here: run it by tools/rdma-lab";
    return {};
}

rdma::RdmaOptions rdma_options(const MemberOptions& options) {
    rdma::RdmaOptions out;
    out.cluster_id = options.cluster_id;
    out.id = options.id;
    out.incarnation = options.incarnation;
    out.ring_bytes = options.ring_bytes;
    const Place place = place_of(options.id);
    out.listen_host = place.address;
    out.device = place.device;
    return out;
}

Fabric& RdmaWorld::start(const MemberOptions& options) {
    rdma::RdmaOptions own = rdma_options(options);
    own.polling = polling_;
    for (std::uint8_t id = 1; id <= kMembers; ++id) {
        if (ReplicaId{id} == options.id) continue;
        const auto peer = fabrics_.find({id});
        own.peers.push_back({{id}, place_of({id}).address,
                             peer == fabrics_.end() ? std::uint16_t{0} : peer->second->listen_port()});
    }
    auto opened = rdma::RdmaFabric::open(own);
    if (!opened) throw std::runtime_error(opened.error().message());
    auto& mine = fabrics_[options.id] = std::move(opened).value();
    for (auto& [id, peer] : fabrics_)
        if (id != options.id) peer->set_peer_address(options.id, place_of(options.id).address, mine->listen_port());
    return *mine;
}

}  // namespace lockstep::transport::contract
