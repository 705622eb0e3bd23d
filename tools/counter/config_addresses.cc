// The one thing of the config file that the library leaves to the service: where clients come in.
#include "tools/counter/settings.h"

#include "proto/config.pb.h"

#include <google/protobuf/text_format.h>

#include <fstream>
#include <iterator>

namespace lockstep::counter {

Result<Router::Addresses> client_addresses(const std::string& path) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    proto::Config config;
    if (!file || !google::protobuf::TextFormat::ParseFromString(text, &config)) {
        return Error("cannot read " + path + " again");
    }
    Router::Addresses addresses;
    for (const auto& member : config.members()) {
        if (!member.has_client_address()) continue;
        addresses[ReplicaId{static_cast<std::uint8_t>(member.id())}] = member.client_address();
    }
    return addresses;
}

}  // namespace lockstep::counter
