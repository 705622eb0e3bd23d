// What people and their tools do with a running cluster.
#include "tests/integration/counter/cluster.h"
#include "tests/unit/counter/test_client.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <string>
#include <vector>

namespace lockstep::counter {
namespace {

std::string redis_cli(std::uint16_t port, const std::vector<std::string>& words) {
    std::vector<std::string> args = {"redis-cli", "-p", std::to_string(port)};
    args.insert(args.end(), words.begin(), words.end());
    return run_program(args).output;
}

TEST(CounterCluster, redis_cli_works_against_any_replica) {
    if (!program_exists("redis-cli")) GTEST_SKIP() << "redis-cli is not installed";
    const Cluster cluster;
    ASSERT_NE(cluster.wait_for_leader(), 0);
    for (int id = 1; id <= 3; ++id) {
        EXPECT_EQ(redis_cli(cluster.client_port(id), {"incr", "x"}), std::to_string(id) + "\n");
        EXPECT_EQ(redis_cli(cluster.client_port(id), {"-3", "get", "nosuch"}), "\n");
    }
    for (int id = 1; id <= 3; ++id) EXPECT_EQ(redis_cli(cluster.client_port(id), {"get", "x"}), "3\n");
}

TEST(CounterCluster, redis_benchmark_ends_without_error_and_the_counter_is_exact) {
    if (!program_exists("redis-benchmark")) GTEST_SKIP() << "redis-benchmark is not installed";
    const Cluster cluster;
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    int expected = 0;
    for (const int id : {leader, leader % 3 + 1}) {
        const Finished finished =
            run_program({"redis-benchmark", "-p", std::to_string(cluster.client_port(id)), "-t", "incr,get,set", "-P",
                         "64", "-n", "102400", "-c", "16", "--csv"});
        EXPECT_EQ(finished.status, 0);
        EXPECT_EQ(finished.output.find("rror"), std::string::npos) << finished.output;
        expected += 102'400;  // a multiple of the pipeline: redis-benchmark rounds up to one
        EXPECT_EQ(TestClient(cluster.client_port(id)).ask("GET counter:__rand_int__\r\n"),
                  "$6\r\n" + std::to_string(expected) + "\r\n");
    }
}

TEST(CounterCluster, sigterm_ends_a_replica_cleanly_and_the_others_go_on) {
    Cluster cluster;
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    EXPECT_EQ(cluster.info(leader, "replication", "durability"), "durable") << "for who asks for nothing";
    EXPECT_EQ(TestClient(cluster.client_port(leader)).ask("INCR x\r\n"), ":1\r\n");
    EXPECT_EQ(cluster.stop(leader), 0) << cluster.log_of(leader);
    EXPECT_EQ(TestClient(cluster.client_port(leader % 3 + 1)).ask("INCR x\r\n"), ":2\r\n");
}

TEST(CounterCluster, wrong_words_get_a_helpful_error) {
    const std::string program = LOCKSTEP_COUNTER;
    const Finished nothing = run_program({program});
    EXPECT_NE(nothing.status, 0);
    EXPECT_NE(nothing.output.find("--config FILE"), std::string::npos) << nothing.output;
    const Finished unknown = run_program({program, "--nosuch"});
    EXPECT_NE(unknown.status, 0);
    EXPECT_NE(unknown.output.find("--nosuch"), std::string::npos) << unknown.output;
    const Finished missing = run_program({program, "--config", "nosuch.textproto"});
    EXPECT_NE(missing.status, 0);
    EXPECT_NE(missing.output.find("nosuch.textproto"), std::string::npos) << missing.output;
    const Finished member = run_program({program, "--id", "1", "--member", "1=here"});
    EXPECT_NE(member.status, 0);
    EXPECT_NE(member.output.find("1=127.0.0.1:7101,127.0.0.1:7201"), std::string::npos) << member.output;
    const Finished servers = run_program({program, "load"});
    EXPECT_NE(servers.status, 0);
    EXPECT_NE(servers.output.find("--servers"), std::string::npos) << servers.output;
    const Finished help = run_program({program, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.output.find("--client-port"), std::string::npos) << help.output;
}

TEST(CounterCluster, client_port_in_use_is_an_error_that_says_so) {
    const Cluster cluster;
    ASSERT_NE(cluster.wait_for_leader(), 0);
    const Finished finished = run_program(cluster.command(1));
    EXPECT_EQ(finished.status, 1);
    EXPECT_NE(finished.output.find("cannot listen for clients on 127.0.0.1:" + std::to_string(cluster.client_port(1)) +
                                   ": Address already in use"),
              std::string::npos)
        << finished.output;
}

}  // namespace
}  // namespace lockstep::counter
