// Servers on a fake cluster, and a client of theirs that speaks bytes.
#pragma once

#include "tests/unit/counter/fake_log.h"
#include "tools/counter/limits.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::counter {

class Server;

// A blocking client with deadlines. A failure is a test failure.
class TestClient {
 public:
    explicit TestClient(std::uint16_t port);
    ~TestClient();
    TestClient(TestClient&& other) noexcept;
    TestClient(const TestClient&) = delete;

    void send(std::string_view bytes);
    // The next reply, whole, as bytes; what came before the end if the server closed, followed by "<closed>".
    std::string receive();
    // So many replies, one after the other.
    std::string receive(std::size_t replies);
    std::string ask(std::string_view bytes) {
        send(bytes);
        return receive();
    }
    // Whether the server has closed the connection and sent nothing more before.
    bool closed();
    void finish_sending();

 private:
    bool read_some();
    int socket_ = -1;
    std::string received_;
};

// A loopback port that nobody has just now: for servers that need to know each other's before they start.
std::uint16_t free_port();

// RESP's array of bulk strings.
std::string request(std::initializer_list<std::string_view> args);

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
};

}  // namespace lockstep::counter
