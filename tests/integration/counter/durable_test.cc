// Counters that keep their log on disk: whoever is killed comes back, and nothing that was acknowledged is missing.
#include "tests/integration/counter/rounds.h"
#include "tests/unit/counter/test_client.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

namespace lockstep::counter {
namespace {

// Some 64 MB of log, by way of `id`.
void fill(const Cluster& cluster, int id) {
    const Finished filled = run_program({"redis-benchmark", "-p", std::to_string(cluster.client_port(id)), "-t", "set",
                                         "-n", "8000", "-d", "8000", "-c", "8", "-q"});
    ASSERT_EQ(filled.status, 0) << filled.output;
}

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

// Away for so long that neither the leader's ring nor its log on disk reaches back: it comes back by a snapshot, and is
// then as good as the others, with what it has on its own disk.
TEST(CounterDurable, one_that_was_away_for_long_comes_back_by_a_snapshot) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608", "--snapshot-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    if (!program_exists("redis-benchmark")) GTEST_SKIP() << "needs redis-benchmark (package redis-tools)";
    Running load(cluster);
    ASSERT_TRUE(load.wait_for_progress(200));
    const int away = cluster.wait_for_leader() % Cluster::kReplicas + 1;
    cluster.signal(away, SIGKILL);
    const int stays = away % Cluster::kReplicas + 1;
    const auto number = [&](int id, const char* key) { return cluster.number(id, "replication", key); };
    fill(cluster, stays);
    ASSERT_TRUE(within_a_minute([&] { return number(stays, "snapshot") != 0; }));
    cluster.restart(away);
    ASSERT_TRUE(within_a_minute([&] {
        return cluster.log_of(away).find("installs the snapshot") != std::string::npos;
    })) << cluster.log_of(away);
    ASSERT_TRUE(within_a_minute([&] { return number(away, "applied") + 2000 > number(stays, "applied"); }))
        << cluster.log_of(away);
    cluster.signal(6 - away - stays, SIGKILL);  // now the one that was away is needed
    ASSERT_TRUE(load.wait_for_progress(200));
    for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.signal(id, SIGKILL);
    for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.restart(id);
    ASSERT_NE(cluster.wait_for_leader(), 0);
    ASSERT_TRUE(load.wait_for_progress(200));
    load.finish();
}

// The same where the log is in memory only: what it needs behind the snapshot is kept for it.
TEST(CounterMemory, one_that_was_stopped_for_long_comes_back_by_a_snapshot) {
    if (!program_exists("redis-benchmark")) GTEST_SKIP() << "needs redis-benchmark (package redis-tools)";
    Cluster cluster({"--durability", "memory", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    const int away = cluster.wait_for_leader() % Cluster::kReplicas + 1;
    const int stays = away % Cluster::kReplicas + 1;
    Running load(cluster, cluster.servers(away));
    ASSERT_TRUE(load.wait_for_progress(200));
    cluster.signal(away, SIGSTOP);
    fill(cluster, stays);
    cluster.signal(away, SIGCONT);
    ASSERT_TRUE(within_a_minute([&] {
        return cluster.log_of(away).find("installs the snapshot") != std::string::npos;
    })) << cluster.log_of(away);
    cluster.signal(6 - away - stays, SIGKILL);  // now the one that was away is needed
    ASSERT_TRUE(load.wait_for_progress(200));
    load.finish();
}

// BGSAVE is of the replica that is asked, in every mode; LASTSAVE tells when it is done.
TEST(CounterSaves, a_snapshot_is_taken_where_it_is_asked_for) {
    for (const char* durability : {"memory", "persist_async", "durable"}) {
        SCOPED_TRACE(durability);
        Cluster cluster({"--durability", durability, "--ring-bytes", "8388608"});
        const int leader = cluster.wait_for_leader();
        ASSERT_NE(leader, 0);
        const int asked = leader % Cluster::kReplicas + 1;
        TestClient client(cluster.client_port(asked));
        ASSERT_EQ(client.ask("SET x 1\r\n"), "+OK\r\n");
        const std::string before = client.ask("LASTSAVE\r\n");
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // it counts seconds
        ASSERT_EQ(client.ask("BGSAVE\r\n"), "+Background saving started\r\n");
        ASSERT_TRUE(within_a_minute([&] { return client.ask("LASTSAVE\r\n") > before; }));
        EXPECT_EQ(cluster.info(asked, "persistence", "rdb_last_bgsave_status"), "ok");
        EXPECT_TRUE(within_a_minute([&] { return cluster.number(asked, "replication", "snapshot") != 0; }));
        EXPECT_EQ(cluster.number(leader, "replication", "snapshot"), 0u);
        EXPECT_FALSE(std::filesystem::is_empty(cluster.data_folder(asked) + "/snapshots"));
    }
}

// The log on disk follows what counts in memory, and is nothing to come back with (S12).
TEST(CounterPersistAsync, serves_by_memory_with_a_log_on_disk_that_is_not_counted) {
    Cluster cluster({"--durability", "persist_async", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    Running load(cluster);
    ASSERT_TRUE(load.wait_for_progress(500));
    const int killed = cluster.wait_for_leader();
    EXPECT_EQ(cluster.info(killed, "replication", "durability"), "persist_async");
    cluster.signal(killed, SIGKILL);
    ASSERT_TRUE(load.wait_for_progress(500));
    std::vector<std::string> again = cluster.command(killed);
    std::erase(again, "--form");
    *(std::ranges::find(again, "--durability") + 1) = "durable";
    const Finished as_durable = run_program(again);
    EXPECT_EQ(as_durable.status, 1);
    EXPECT_NE(as_durable.output.find("formed with durability 'persist_async'"), std::string::npos) << as_durable.output;
    cluster.restart(killed);
    ASSERT_TRUE(cluster.is_taken_in(killed)) << cluster.log_of(killed);
    EXPECT_TRUE(std::filesystem::exists(cluster.data_folder(killed) + "/log.before"));
    load.finish();
    // Within a heartbeat all that is committed is on disk, and none of it waits for that.
    for (int id = 1; id <= Cluster::kReplicas; ++id) {
        EXPECT_TRUE(within_a_minute([&] {
            return cluster.number(id, "replication", "durable") == cluster.number(id, "replication", "log_end");
        })) << cluster.info(id, "replication", "durable");
    }
}

// Its memory is gone with its process: it comes back as another life, learns, and votes again (S12). With three of them
// each round needs the ones that were taken in before.
TEST(CounterMemory, each_may_be_killed_when_the_one_before_is_taken_in_again) {
    Cluster cluster({"--durability", "memory", "--ring-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    Running load(cluster);
    for (int round = 0; round < rounds(6) && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const int id = round % 2 == 0 ? cluster.wait_for_leader() : 1 + round % Cluster::kReplicas;
        ASSERT_NE(id, 0);
        const std::string before = cluster.info(id, "replication", "incarnation");
        ASSERT_TRUE(load.wait_for_progress(200));
        cluster.signal(id, SIGKILL);
        ASSERT_TRUE(load.wait_for_progress(200));
        cluster.restart(id);
        ASSERT_TRUE(cluster.is_taken_in(id)) << cluster.log_of(id);
        ASSERT_NE(cluster.info(id, "replication", "incarnation"), before);
    }
    ASSERT_TRUE(load.wait_for_progress(200));
    load.finish();
}

// The same for one whose disk is gone; but that has to be said, or a wrong path would be taken for a lost disk.
TEST(CounterDurable, each_may_lose_its_data_folder_when_the_one_before_is_taken_in_again) {
    Cluster cluster({"--durability", "durable", "--ring-bytes", "8388608", "--snapshot-bytes", "8388608"});
    ASSERT_NE(cluster.wait_for_leader(), 0);
    Running load(cluster);
    for (int id = 1; id <= Cluster::kReplicas && !testing::Test::HasFailure(); ++id) {
        SCOPED_TRACE("replica " + std::to_string(id));
        ASSERT_TRUE(load.wait_for_progress(200));
        cluster.signal(id, SIGKILL);
        std::filesystem::remove_all(cluster.data_folder(id));
        std::vector<std::string> args = cluster.command(id);
        std::erase(args, "--form");
        const Finished unsaid = run_program(args);
        EXPECT_EQ(unsaid.status, 1);
        EXPECT_NE(unsaid.output.find("--join"), std::string::npos) << unsaid.output;
        cluster.restart(id, {"--join"});
        ASSERT_TRUE(cluster.is_taken_in(id)) << cluster.log_of(id);
    }
    for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.signal(id, SIGKILL);
    for (int id = 1; id <= Cluster::kReplicas; ++id) cluster.restart(id);
    ASSERT_TRUE(load.wait_for_progress(200));
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
    EXPECT_NE(memory.output.find("formed with durability 'durable'"), std::string::npos) << memory.output;
    const Finished other_ring = start_with("--ring-bytes", "16777216");
    EXPECT_EQ(other_ring.status, 1);
    EXPECT_NE(other_ring.output.find("ring"), std::string::npos) << other_ring.output;
    const Finished other_replica = start_with("--data-folder", cluster.data_folder(2));
    EXPECT_EQ(other_replica.status, 1);
    EXPECT_NE(other_replica.output.find("replica"), std::string::npos) << other_replica.output;
}

}  // namespace
}  // namespace lockstep::counter
