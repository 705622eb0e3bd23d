// Counters that keep their log on disk: whoever is killed comes back, and nothing that was acknowledged is missing.
#include "tests/integration/counter/rounds.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>

namespace lockstep::counter {
namespace {

TEST(CounterDurable, all_killed_at_once_come_back_with_everything) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    Running load(cluster);
    for (int round = 0; round < rounds(50) && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        ASSERT_TRUE(load.wait_for_progress(200));
        for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.signal(id, SIGKILL);
        for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.restart(id);
        ASSERT_NE(cluster.wait_for_leader(), 0);
    }
    ASSERT_TRUE(load.wait_for_progress(200));
    const LoadReport report = load.finish();
    std::printf("%llu increments acknowledged, %llu unknown\n", static_cast<unsigned long long>(report.acked),
                static_cast<unsigned long long>(report.unknown));
}

TEST(CounterDurable, one_after_the_other_is_killed_and_rejoins) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    Running load(cluster);
    for (int round = 0; round < 12 && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const int id = round % 2 == 0 ? cluster.wait_for_leader() : 1 + round % Cluster::kReplicas;
        ASSERT_NE(id, 0);
        cluster.signal(id, SIGKILL);
        ASSERT_TRUE(load.wait_for_progress(200));
        cluster.restart(id);
        ASSERT_TRUE(load.wait_for_progress(200));
    }
    load.finish();
}

TEST(CounterDurable, wrong_folders_are_refused) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    for (int id = 1; id <= Cluster::kReplicas; ++id) EXPECT_EQ(cluster.stop(id), 0);
    const auto start_with = [&](const std::string& flag, const std::string& value) {
        std::vector<std::string> args = cluster.command(1);
        std::erase(args, "--form");
        *(std::ranges::find(args, flag) + 1) = value;
        return run_program(args);
    };
    const Finished memory = start_with("--durability", "memory");
    EXPECT_EQ(memory.status, 1);
    EXPECT_NE(memory.output.find("keeps its log on disk"), std::string::npos) << memory.output;
    const Finished other_ring = start_with("--ring-bytes", "16777216");
    EXPECT_EQ(other_ring.status, 1);
    EXPECT_NE(other_ring.output.find("ring"), std::string::npos) << other_ring.output;
    const Finished other_replica = start_with("--data-folder", cluster.data_folder(2));
    EXPECT_EQ(other_replica.status, 1);
    EXPECT_NE(other_replica.output.find("replica"), std::string::npos) << other_replica.output;
}

}  // namespace
}  // namespace lockstep::counter
