// `lockstep recover`: an operator's way out when a majority of the voters is lost.
#include "tests/integration/counter/rounds.h"
#include "tests/unit/counter/test_client.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::counter {
namespace {

// Two of three disks are lost: nobody leads, and the one that is left goes on when an operator names the loss (S12).
TEST(CounterRecover, a_lost_majority_is_recovered_from_when_the_loss_is_named) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    {
        Running load(cluster);
        ASSERT_TRUE(load.wait_for_progress(500));
        load.finish();
    }
    const auto ask = [&](int id, const std::string& command) {
        return TestClient(cluster.client_port(id)).ask(command);
    };
    ASSERT_EQ(ask(1, "SET kept 42\r\n"), "+OK\r\n");
    const auto durable = [&](int id) { return cluster.number(id, "replication", "durable"); };
    ASSERT_TRUE(within_a_minute([&] { return durable(1) == durable(2) && durable(2) == durable(3); }));
    for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.signal(id, SIGKILL);
    for (const int lost : {1, 3}) {
        std::filesystem::remove_all(cluster.data_folder(lost));
        cluster.restart(lost, {"--join"});
    }
    cluster.restart(2);
    ASSERT_TRUE(within_a_minute([&] { return cluster.serves(1) && cluster.serves(2); }));
    ASSERT_TRUE(within_a_minute([&] {
        return cluster.info(2, "replication", "note").find("lockstep recover") != std::string::npos;
    })) << cluster.info(2, "replication", "note");
    EXPECT_EQ(cluster.info(2, "replication", "leader"), "none");
    EXPECT_NE(cluster.info(1, "replication", "note").find("take it in"), std::string::npos);

    const auto recover = [&](const std::vector<std::string>& flags) {
        std::vector<std::string> args{LOCKSTEP_CLI, "recover", cluster.data_folder(2)};
        args.insert(args.end(), flags.begin(), flags.end());
        return run_program(args);
    };
    EXPECT_NE(recover({}).status, 0) << "it runs";
    EXPECT_EQ(cluster.stop(2), 0);
    const Finished looked = recover({});
    ASSERT_EQ(looked.status, 0) << looked.output;
    const std::string flag = "--accept-loss-behind";
    const std::size_t at = looked.output.find(flag);
    ASSERT_NE(at, std::string::npos) << looked.output;
    const std::string index = std::to_string(std::stoull(looked.output.substr(at + flag.size())));
    const Finished wrong = recover({flag, "1"});
    EXPECT_NE(wrong.status, 0);
    EXPECT_NE(wrong.output.find("ends with index " + index), std::string::npos) << wrong.output;
    const Finished done = recover({flag, index});
    ASSERT_EQ(done.status, 0) << done.output;
    cluster.restart(2);
    for (int id = 1; id <= Cluster::kReplicas; ++id) ASSERT_TRUE(cluster.is_taken_in(id)) << cluster.log_of(id);
    cluster.signal(2, SIGKILL);  // the two that had nothing are enough
    ASSERT_NE(cluster.wait_for_leader(), 0);
    EXPECT_EQ(ask(1, "GET kept\r\n"), "$2\r\n42\r\n");
}

}  // namespace
}  // namespace lockstep::counter
