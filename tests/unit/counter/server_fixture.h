// Servers on a fake cluster.
#pragma once

#include "tests/unit/counter/fake_log.h"
#include "tests/unit/counter/test_client.h"
#include "tools/counter/limits.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace lockstep::counter {

class Server;

class ServerTest : public testing::Test {
 protected:
    ServerTest();
    ~ServerTest() override;
    // Call once, before anything else.
    void start(std::uint8_t replicas = 1, Limits limits = {});
    // Starts one server of the cluster (again), on the port it had; and ends it.
    void start_server(ReplicaId id);
    void end_server(ReplicaId id);
    void TearDown() override;
    TestClient client(std::uint8_t id = 1) { return TestClient(ports_.at(ReplicaId{id})); }

    Limits limits_;
    std::unique_ptr<FakeCluster> cluster_;
    std::map<ReplicaId, std::uint16_t> ports_;
    std::map<ReplicaId, std::unique_ptr<Server>> servers_;
    std::vector<std::unique_ptr<Server>> ended_;  // the cluster still holds requests of theirs
};

}  // namespace lockstep::counter
