#include "tests/unit/counter/server_fixture.h"

namespace lockstep::counter {
namespace {

class CounterServer : public ServerTest {};

TEST_F(CounterServer, increments_count) {
    start();
    TestClient c = client();
    EXPECT_EQ(c.ask("INCR x\r\n"), ":1\r\n");
    EXPECT_EQ(c.ask(request({"incr", "x"})), ":2\r\n");
    EXPECT_EQ(c.ask(request({"INCRBY", "x", "40"})), ":42\r\n");
    EXPECT_EQ(c.ask(request({"DECR", "x"})), ":41\r\n");
    EXPECT_EQ(c.ask(request({"DECRBY", "x", "-9"})), ":50\r\n");
    EXPECT_EQ(c.ask(request({"GET", "x"})), "$2\r\n50\r\n");
}

TEST_F(CounterServer, pipeline_is_one_entry_and_keeps_its_order) {
    start();
    TestClient c = client();
    c.send("INCR x\r\nGET x\r\nPING\r\nINCR x\r\nnosuch\r\nGET y\r\n");
    EXPECT_EQ(c.receive(6),
              ":1\r\n$1\r\n1\r\n+PONG\r\n:2\r\n-ERR unknown command 'nosuch', with args beginning with: \r\n$-1\r\n");
    EXPECT_EQ(cluster_->entries(), 1U);
}

TEST_F(CounterServer, follower_forwards_to_the_leader) {
    start(3);
    TestClient c = client(2);
    EXPECT_EQ(c.ask("INCR x\r\n"), ":1\r\n");
    EXPECT_EQ(client(3).ask("GET x\r\n"), "$1\r\n1\r\n");
}

}  // namespace
}  // namespace lockstep::counter
