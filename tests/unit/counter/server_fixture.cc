#include "tests/unit/counter/server_fixture.h"

#include "tools/counter/server.h"

#include <string>
#include <utility>

namespace lockstep::counter {

ServerTest::ServerTest() = default;
ServerTest::~ServerTest() = default;

void ServerTest::start(std::uint8_t replicas, Limits limits) {
    limits_ = limits;
    cluster_ = std::make_unique<FakeCluster>(replicas, limits_);
    for (std::uint8_t id = 1; id <= replicas; ++id) ports_[ReplicaId{id}] = replicas == 1 ? 0 : free_port();
    for (std::uint8_t id = 1; id <= replicas; ++id) start_server(ReplicaId{id});
}

void ServerTest::start_server(ReplicaId id) {
    ServerOptions options;
    options.port = ports_[id];
    options.self = id;
    options.limits = limits_;
    for (const auto& [other, port] : ports_) {
        if (other != id) options.others[other] = "127.0.0.1:" + std::to_string(port);
    }
    auto server = std::make_unique<Server>(options, cluster_->log(id), cluster_->machine(id));
    const auto listening = server->listen();
    ASSERT_TRUE(listening.ok()) << listening.error().message();
    server->start();
    ports_[id] = server->port();
    servers_[id] = std::move(server);
}

void ServerTest::end_server(ReplicaId id) {
    servers_.at(id)->stop();
    ended_.push_back(std::move(servers_.at(id)));
    servers_.erase(id);
}

void ServerTest::TearDown() {
    if (cluster_) cluster_->stop();
    servers_.clear();
    ended_.clear();
}

}  // namespace lockstep::counter
