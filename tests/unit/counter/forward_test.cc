// What becomes of commands when leaders come and go.
#include "tests/unit/counter/server_fixture.h"

#include <chrono>
#include <string>

namespace lockstep::counter {
namespace {

class CounterForward : public ServerTest {
 protected:
    static constexpr ReplicaId kFirst{1};
    static constexpr ReplicaId kSecond{2};
    static constexpr ReplicaId kThird{3};
};

const std::string kUnknownIncr =
    "-UNKNOWN outcome of INCR is unknown: the leader was lost before it answered; it may or may not take effect\r\n";

TEST_F(CounterForward, follower_forwards_to_the_leader) {
    start(3);
    EXPECT_EQ(client(2).ask("INCR x\r\n"), ":1\r\n");
    EXPECT_EQ(client(3).ask("GET x\r\n"), "$1\r\n1\r\n");
    EXPECT_EQ(client(1).ask("INCR x\r\n"), ":2\r\n");
}

TEST_F(CounterForward, pipeline_through_a_follower_keeps_its_order) {
    start(3);
    TestClient c = client(3);
    std::string pipeline;
    std::string expected;
    for (int i = 1; i <= 2000; ++i) {
        pipeline += "INCR x\r\nPING\r\nGET x\r\n";
        const std::string n = std::to_string(i);
        expected += ":" + n + "\r\n+PONG\r\n$" + std::to_string(n.size()) + "\r\n" + n + "\r\n";
    }
    c.send(pipeline);
    EXPECT_EQ(c.receive(6000), expected);
}

TEST_F(CounterForward, change_of_leader_between_commands_is_not_noticed) {
    start(3);
    TestClient clients[] = {client(1), client(2), client(3)};
    int expected = 0;
    for (int round = 0; round < 10; ++round) {
        cluster_->lead(ReplicaId{static_cast<std::uint8_t>(1 + round % 3)});
        for (TestClient& c : clients) ASSERT_EQ(c.ask("INCR x\r\n"), ":" + std::to_string(++expected) + "\r\n");
    }
}

TEST_F(CounterForward, write_under_way_at_a_lost_leader_is_unknown_whether_it_took_effect_or_not) {
    start(3);
    for (const bool takes_effect : {false, true}) {
        cluster_->lead(kFirst);
        cluster_->hold(true);
        TestClient direct = client(1);
        TestClient forwarded = client(2);
        direct.send("INCR x\r\nPING\r\nINCR x\r\n");
        ASSERT_TRUE(cluster_->wait_for_pending(1));
        forwarded.send("INCR x\r\n");
        ASSERT_TRUE(cluster_->wait_for_pending(2));
        cluster_->lead(kThird, takes_effect);
        cluster_->hold(false);
        EXPECT_EQ(direct.receive(3), kUnknownIncr + "+PONG\r\n" + kUnknownIncr);
        EXPECT_EQ(forwarded.receive(), kUnknownIncr);
        EXPECT_EQ(direct.ask("GET x\r\n"), takes_effect ? "$1\r\n3\r\n" : "$-1\r\n");
    }
}

TEST_F(CounterForward, read_under_way_at_a_lost_leader_is_done_again) {
    start(3);
    ASSERT_EQ(client(1).ask("INCR x\r\n"), ":1\r\n");
    cluster_->hold(true);
    TestClient direct = client(1);
    TestClient forwarded = client(2);
    direct.send("GET x\r\n");
    forwarded.send("GET x\r\n");
    ASSERT_TRUE(cluster_->wait_for_pending(2));
    cluster_->lead(kThird);
    cluster_->hold(false);
    EXPECT_EQ(direct.receive(), "$1\r\n1\r\n");
    EXPECT_EQ(forwarded.receive(), "$1\r\n1\r\n");
}

TEST_F(CounterForward, write_sent_to_a_server_that_dies_is_unknown_and_the_next_goes_elsewhere) {
    start(3);
    TestClient c = client(2);
    ASSERT_EQ(c.ask("INCR x\r\n"), ":1\r\n");
    cluster_->hold(true);
    c.send("INCR x\r\n");
    ASSERT_TRUE(cluster_->wait_for_pending(1));
    end_server(kFirst);
    EXPECT_EQ(c.receive(), kUnknownIncr);
    cluster_->lead(kThird);
    cluster_->hold(false);
    EXPECT_EQ(c.ask("INCR x\r\n"), ":2\r\n");
}

TEST_F(CounterForward, leader_that_is_deposed_and_answers_nothing_is_given_up) {
    start(3);
    TestClient c = client(2);
    ASSERT_EQ(c.ask("INCR x\r\n"), ":1\r\n");
    cluster_->hold(true);
    c.send("INCR x\r\n");
    ASSERT_TRUE(cluster_->wait_for_pending(1));
    // The fake ends what is pending when another leads; so replica 2 hears of another leader, and nothing else changes.
    const auto begin = std::chrono::steady_clock::now();
    cluster_->believe(kThird);
    EXPECT_EQ(c.receive(), kUnknownIncr);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limits_.forward_timeout);
    cluster_->believe({});
    cluster_->hold(false);
}

TEST_F(CounterForward, leader_that_answers_nothing_for_too_long_is_given_up) {
    Limits limits;
    limits.forward_timeout = std::chrono::milliseconds(200);
    start(3, limits);
    TestClient c = client(2);
    cluster_->hold(true);
    c.send("INCR x\r\n");
    ASSERT_TRUE(cluster_->wait_for_pending(1));
    EXPECT_EQ(c.receive(), kUnknownIncr);
    cluster_->hold(false);
}

TEST_F(CounterForward, no_leader_is_waited_for_and_then_an_error) {
    Limits limits;
    limits.patience = std::chrono::milliseconds(150);
    start(3, limits);
    cluster_->lead({});
    const std::string refused =
        "-CLUSTERDOWN no leader answered within 150 ms: INCR was not executed, try again\r\n";
    EXPECT_EQ(client(1).ask("INCR x\r\n"), refused);
    EXPECT_EQ(client(2).ask("INCR x\r\n"), refused);
    EXPECT_EQ(client(2).ask("PING\r\n"), "+PONG\r\n");
    cluster_->lead(kSecond);
    EXPECT_EQ(client(1).ask("INCR x\r\n"), ":1\r\n");
}

TEST_F(CounterForward, command_that_waits_for_a_leader_is_done_once_there_is_one) {
    start(3);
    cluster_->lead({});
    TestClient clients[] = {client(1), client(2), client(3)};
    for (TestClient& c : clients) c.send("INCR x\r\nINCR x\r\n");
    cluster_->lead(kThird);
    for (TestClient& c : clients) {
        EXPECT_EQ(c.receive()[0], ':');
        EXPECT_EQ(c.receive()[0], ':');
    }
    EXPECT_EQ(client(1).ask("GET x\r\n"), "$1\r\n6\r\n");
}

TEST_F(CounterForward, replicas_that_name_each_other_leader_end_in_an_error_and_no_loop) {
    Limits limits;
    limits.patience = std::chrono::milliseconds(150);
    start(3, limits);
    cluster_->lead({});
    cluster_->tell(kFirst, kSecond);
    cluster_->tell(kSecond, kFirst);
    EXPECT_EQ(client(1).ask("INCR x\r\n"),
              "-CLUSTERDOWN no leader answered within 150 ms: INCR was not executed, try again\r\n");
    // 150 ms at intervals of a quarter of a millisecond and more, a few attempts each: a loop without rest makes more.
    const std::string info = client(1).ask("INFO stats\r\n");
    const std::size_t at = info.find("groups_forwarded:");
    ASSERT_NE(at, std::string::npos);
    EXPECT_LT(std::stoi(info.substr(at + 17)), 1000);
}

TEST_F(CounterForward, busy_leader_is_tried_again_and_then_an_error) {
    Limits limits;
    limits.patience = std::chrono::milliseconds(150);
    start(3, limits);
    cluster_->set_busy(true);
    for (const std::uint8_t id : {std::uint8_t{1}, std::uint8_t{2}}) {
        EXPECT_EQ(client(id).ask("INCR x\r\n"),
                  "-BUSY the log had no room for 150 ms: INCR was not executed, try again later\r\n");
    }
    TestClient c = client(2);
    c.send("INCR x\r\n");
    cluster_->set_busy(false);
    EXPECT_EQ(c.receive(), ":1\r\n");
}

TEST_F(CounterForward, stopped_replica_says_so) {
    start(1);
    TestClient c = client(1);
    ASSERT_EQ(c.ask("INCR x\r\n"), ":1\r\n");
    cluster_->stop();
    EXPECT_EQ(c.ask("INCR x\r\n"),
              "-STOPPING this replica is stopping: INCR was not executed, try another replica\r\n");
}

TEST_F(CounterForward, client_that_goes_while_its_command_is_under_way_harms_nobody) {
    start(3);
    cluster_->hold(true);
    {
        TestClient direct = client(1);
        TestClient forwarded = client(2);
        direct.send("INCR x\r\n");
        forwarded.send("INCR x\r\n");
        ASSERT_TRUE(cluster_->wait_for_pending(2));
    }
    cluster_->hold(false);
    EXPECT_EQ(client(2).ask("INCR x\r\n"), ":3\r\n");
}

TEST_F(CounterForward, forged_frames_close_the_link_or_are_refused) {
    start(1);
    TestClient wrong_version = client();
    EXPECT_TRUE(wrong_version.ask("LOCKSTEP.UPSTREAM 99\r\n").starts_with("-ERR lockstep.upstream"));
    EXPECT_TRUE(wrong_version.closed());
    TestClient oversized = client();
    ASSERT_EQ(oversized.ask("LOCKSTEP.UPSTREAM 1\r\n"), "+OK\r\n");
    oversized.send("\xff\xff\xff\xff");
    EXPECT_TRUE(oversized.closed());
    TestClient garbage = client();
    ASSERT_EQ(garbage.ask("LOCKSTEP.UPSTREAM 1\r\n"), "+OK\r\n");
    // Number 7, then a group of an unknown version: refused for good, so nothing is executed.
    garbage.send(std::string("\x0a\0\0\0\x07\0\0\0\0\0\0\0\x63\x63", 14));
    garbage.finish_sending();
    EXPECT_EQ(client().ask("DBSIZE\r\n"), ":0\r\n");
    EXPECT_EQ(cluster_->entries(), 0U);
}

}  // namespace
}  // namespace lockstep::counter
