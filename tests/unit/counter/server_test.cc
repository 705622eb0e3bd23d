#include "tests/unit/counter/server_fixture.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

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

TEST_F(CounterServer, pipeline_that_only_reads_writes_no_entry) {
    start();
    TestClient c = client();
    c.send("GET x\r\nMGET x y\r\nEXISTS x\r\nDBSIZE\r\n");
    EXPECT_EQ(c.receive(4), "$-1\r\n*2\r\n$-1\r\n$-1\r\n:0\r\n:0\r\n");
    EXPECT_EQ(cluster_->entries(), 0U);
}

TEST_F(CounterServer, read_after_write_in_the_next_pipeline_sees_the_write) {
    start();
    TestClient c = client();
    for (int i = 1; i <= 200; ++i) {
        c.send("INCR x\r\n");
        c.send("GET x\r\n");
        const std::string n = std::to_string(i);
        ASSERT_EQ(c.receive(2), ":" + n + "\r\n$" + std::to_string(n.size()) + "\r\n" + n + "\r\n");
    }
}

TEST_F(CounterServer, long_pipeline_is_answered_in_order_over_many_groups) {
    start();
    TestClient c = client();
    std::string pipeline;
    std::string expected;
    for (int i = 1; i <= 50'000; ++i) {
        pipeline += request({"INCR", "a-key-of-twenty-bytes"});
        expected += ":" + std::to_string(i) + "\r\n";
    }
    c.send(pipeline);
    EXPECT_EQ(c.receive(50'000), expected);
    EXPECT_GT(cluster_->entries(), 1U);
    EXPECT_LT(cluster_->entries(), 5'000U);
}

TEST_F(CounterServer, hello_changes_the_version_for_what_follows) {
    start();
    TestClient c = client();
    c.send("GET x\r\nHELLO 3\r\nGET x\r\nMGET x\r\nHELLO 2\r\nGET x\r\n");
    EXPECT_EQ(c.receive(), "$-1\r\n");
    EXPECT_EQ(c.receive(),
              "%7\r\n$6\r\nserver\r\n$16\r\nlockstep-counter\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n"
              ":3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
              "$7\r\nmodules\r\n*0\r\n");
    EXPECT_EQ(c.receive(2), "_\r\n*1\r\n_\r\n");
    EXPECT_TRUE(c.receive().starts_with("*14\r\n"));
    EXPECT_EQ(c.receive(), "$-1\r\n");
    EXPECT_EQ(c.ask("HELLO 4\r\n"), "-NOPROTO unsupported protocol version\r\n");
}

TEST_F(CounterServer, quit_answers_and_closes_after_what_came_before) {
    start();
    TestClient c = client();
    c.send("INCR x\r\nQUIT\r\nINCR x\r\n");
    EXPECT_EQ(c.receive(2), ":1\r\n+OK\r\n");
    EXPECT_TRUE(c.closed());
    EXPECT_EQ(client().ask("GET x\r\n"), "$1\r\n1\r\n");
}

TEST_F(CounterServer, protocol_error_is_answered_after_what_came_before_and_closes) {
    start();
    TestClient c = client();
    c.send("INCR x\r\n*1\r\n$x\r\n");
    EXPECT_EQ(c.receive(2), ":1\r\n-ERR Protocol error: invalid bulk length\r\n");
    EXPECT_TRUE(c.closed());
}

TEST_F(CounterServer, client_that_ends_its_sending_gets_all_replies) {
    start();
    TestClient c = client();
    c.send("INCR x\r\nINCR x\r\nPING\r\nINC");
    c.finish_sending();
    EXPECT_EQ(c.receive(3), ":1\r\n:2\r\n+PONG\r\n");
    EXPECT_TRUE(c.closed());
}

TEST_F(CounterServer, info_shows_the_replica) {
    start(3);
    TestClient c = client(2);
    const std::string info = c.ask("INFO\r\n");
    for (const char* line : {"# Server\r\n", "# Clients\r\n", "connected_clients:1\r\n", "# Stats\r\n",
                             "# Replication\r\n", "replica_id:2\r\n", "role:follower\r\n", "leader:1\r\n",
                             "ballot:1.1\r\n", "peers:2\r\n",
                             "peer1:connected=yes,votes=yes,path=fake,lane=streaming"}) {
        EXPECT_NE(info.find(line), std::string::npos) << line << " is not in\n" << info;
    }
    const std::string one = c.ask("INFO Replication\r\n");
    EXPECT_EQ(one.find("# Server"), std::string::npos);
    EXPECT_NE(one.find("leader:1\r\n"), std::string::npos);
    EXPECT_EQ(c.ask("INFO nosuch\r\n"), "$0\r\n\r\n");
}

TEST_F(CounterServer, a_save_that_fails_is_told_and_is_no_last_save) {
    start();
    TestClient c = client();
    const std::string before = c.ask("LASTSAVE\r\n");
    EXPECT_EQ(before.front(), ':');
    cluster_->hold_snapshots(true);
    EXPECT_EQ(c.ask("BGSAVE\r\n"), "+Background saving started\r\n");
    EXPECT_NE(c.ask("INFO persistence\r\n").find("rdb_bgsave_in_progress:1"), std::string::npos);
    cluster_->hold_snapshots(false, "the disk is full");
    const std::string info = c.ask("INFO persistence\r\n");
    EXPECT_NE(info.find("rdb_bgsave_in_progress:0"), std::string::npos) << info;
    EXPECT_NE(info.find("rdb_last_bgsave_status:err"), std::string::npos) << info;
    EXPECT_EQ(c.ask("LASTSAVE\r\n"), before);
    EXPECT_EQ(c.ask("BGSAVE\r\n"), "+Background saving started\r\n");
    EXPECT_NE(c.ask("INFO persistence\r\n").find("rdb_last_bgsave_status:ok"), std::string::npos);
}

TEST_F(CounterServer, introspection_answers_what_clients_ask_first) {
    start();
    TestClient c = client();
    EXPECT_EQ(c.ask("COMMAND COUNT\r\n"), ":22\r\n");
    EXPECT_EQ(c.ask("COMMAND INFO get nosuch\r\n"),
              "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n*-"
              "1\r\n");
    EXPECT_TRUE(c.ask("COMMAND\r\n").starts_with("*22\r\n*10\r\n$4\r\nincr\r\n:2\r\n"));
    EXPECT_TRUE(c.ask("COMMAND DOCS\r\n").starts_with("*44\r\n$4\r\nincr\r\n*6\r\n$7\r\nsummary\r\n"));
    EXPECT_EQ(c.ask("CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    EXPECT_EQ(c.ask("CONFIG GET APPEND*\r\n"), "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
    EXPECT_EQ(c.ask("CONFIG GET nosuch\r\n"), "*0\r\n");
    EXPECT_EQ(c.ask("CONFIG SET save x\r\n"), "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n");
    EXPECT_EQ(c.ask("CLIENT ID\r\n"), ":1\r\n");
    EXPECT_EQ(c.ask("CLIENT SETINFO LIB-NAME redis-py\r\n"), "+OK\r\n");
    EXPECT_NE(c.ask("CLIENT INFO\r\n").find("lib-name=redis-py"), std::string::npos);
}

TEST_F(CounterServer, limits_are_errors_and_change_nothing) {
    Limits limits;
    limits.key_bytes = 8;
    limits.value_bytes = 16;
    start(1, limits);
    TestClient c = client();
    EXPECT_EQ(c.ask("INCR 123456789\r\n"),
              "-ERR the key has 9 bytes: at most 8 are taken (see --max-key-bytes)\r\n");
    EXPECT_EQ(c.ask("DEL a 123456789\r\n"),
              "-ERR the key has 9 bytes: at most 8 are taken (see --max-key-bytes)\r\n");
    EXPECT_EQ(c.ask("SET x 12345678901234567\r\n"),
              "-ERR the value has 17 bytes: at most 16 are taken (see --max-value-bytes)\r\n");
    EXPECT_EQ(c.ask("DBSIZE\r\n"), ":0\r\n");
    EXPECT_EQ(cluster_->entries(), 0U);
}

TEST_F(CounterServer, full_memory_refuses_what_adds_and_nothing_else) {
    Limits limits;
    limits.memory_bytes = 10'000;
    start(1, limits);
    TestClient c = client();
    std::string reply;
    for (int i = 0; i < 1000 && reply[0] != '-'; ++i) reply = c.ask(request({"INCR", "k" + std::to_string(i)}));
    EXPECT_EQ(reply, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    EXPECT_EQ(c.ask("GET k0\r\n"), "$1\r\n1\r\n");
    EXPECT_EQ(c.ask("DEL k0 k1 k2\r\n"), ":3\r\n");
    EXPECT_EQ(c.ask("INCR k0\r\n"), ":1\r\n");
}

TEST_F(CounterServer, one_client_more_than_allowed_is_told_so) {
    Limits limits;
    limits.clients = 2;
    start(1, limits);
    TestClient first = client();
    TestClient second = client();
    EXPECT_EQ(first.ask("PING\r\n") + second.ask("PING\r\n"), "+PONG\r\n+PONG\r\n");
    TestClient third = client();
    EXPECT_EQ(third.receive(), "-ERR max number of clients reached\r\n");
    EXPECT_TRUE(third.closed());
    EXPECT_EQ(first.ask("PING\r\n"), "+PONG\r\n");
}

TEST_F(CounterServer, long_pipeline_of_long_local_replies_is_answered_whole) {
    start();
    TestClient c = client();
    const std::string reply = c.ask("COMMAND DOCS\r\n");
    // A few kilobytes in, and more out than the server lets wait at a time.
    const std::size_t count = 4 * kOutputHighWaterBytes / reply.size();
    std::string pipeline;
    for (std::size_t i = 0; i < count; ++i) pipeline += "COMMAND DOCS\r\n";
    c.send(pipeline);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(c.receive(), reply) << i;
}

TEST_F(CounterServer, client_that_does_not_read_holds_up_itself_alone) {
    start();
    TestClient slow = client();
    const std::string value(100'000, 'v');
    EXPECT_EQ(slow.ask(request({"SET", "big", value})), "+OK\r\n");
    // 100 MB of replies: more than sockets hold, so the server must stop reading from this client.
    const std::size_t gets = 1000;
    for (std::size_t i = 0; i < gets; ++i) slow.send("GET big\r\n");
    TestClient other = client();
    for (int i = 1; i <= 100; ++i) ASSERT_EQ(other.ask("INCR x\r\n"), ":" + std::to_string(i) + "\r\n");
    const std::string expected = "$100000\r\n" + value + "\r\n";
    std::size_t right = 0;
    for (std::size_t i = 0; i < gets; ++i) right += slow.receive() == expected ? 1 : 0;
    // A group of which the replies would be too long has errors in their place, so not all need be there.
    EXPECT_GT(right, 100U);
    EXPECT_EQ(slow.ask("PING\r\n"), "+PONG\r\n");
}

TEST_F(CounterServer, client_that_never_reads_is_dropped_in_the_end) {
    Limits limits;
    limits.output_stall = std::chrono::milliseconds(100);
    start(1, limits);
    TestClient slow = client();
    EXPECT_EQ(slow.ask(request({"SET", "big", std::string(500'000, 'v')})), "+OK\r\n");
    for (int i = 0; i < 100; ++i) slow.send("GET big\r\n");
    TestClient other = client();
    std::string info;
    for (int i = 0; i < 500 && info.find("connected_clients:1\r\n") == std::string::npos; ++i) {
        info = other.ask("INFO clients\r\n");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_NE(info.find("connected_clients:1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::counter
