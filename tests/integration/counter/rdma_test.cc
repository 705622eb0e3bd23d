// The counter over RDMA: leaders that die, groups that have RDMA in part, followers whose processes stand still, and
// how many WRITEs a commit takes. Skipped where there is no RDMA; `tools/rdma-lab ctest -L rdma` makes some.
//
// LOCKSTEP_ROUNDS sets how many leaders are killed (6 by default: a round takes seconds in the lab).
#include "tests/integration/counter/rounds.h"
#include "tests/unit/counter/test_client.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {
namespace {

using std::chrono::steady_clock;

// The name of a device with an active port; empty if there is none.
std::string active_device() {
    std::error_code none;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none))
        for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", none)) {
            std::string state;
            std::getline(std::ifstream(port.path() / "state"), state);
            if (state.find("ACTIVE") != std::string::npos) return device.path().filename();
        }
    return {};
}

// The emulated processors of a lab on a busy machine can stand still for longer than the usual election time-out. That
// a leader's process has ended is noticed without one.
std::vector<std::string> flags_of(const std::string& transport, bool lab) {
    std::vector<std::string> flags = {"--transport", transport, "--election-timeout-ms", "2000"};
    if (!lab && transport != "tcp") flags.insert(flags.end(), {"--rdma-device", active_device()});
    return flags;
}

// All over `transport`, but for one, if it is named, over TCP. In the lab an address for each replica; on a machine
// with a card that is the device of all.
Network over(const std::string& transport, int without = 0) {
    Network network;
    std::istringstream addresses(std::getenv("LOCKSTEP_LAB_ADDRESSES") ? std::getenv("LOCKSTEP_LAB_ADDRESSES") : "");
    const bool lab = static_cast<bool>(addresses >> network.hosts[0] >> network.hosts[1] >> network.hosts[2]);
    for (int id = 1; id <= Cluster::kReplicas; ++id)
        network.flags[static_cast<std::size_t>(id - 1)] = flags_of(id == without ? "tcp" : transport, lab);
    return network;
}

bool until(const std::function<bool()>& done) {
    const auto deadline = steady_clock::now() + std::chrono::seconds(30);
    while (!done()) {
        if (steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

std::string peer_line(const Cluster& cluster, int id, int peer) {
    return cluster.info(id, "replication", "peer" + std::to_string(peer));
}

class CounterRdma : public testing::Test {
 protected:
    void SetUp() override {
        if (active_device().empty()) GTEST_SKIP() << "no active RDMA port here: run it by tools/rdma-lab";
    }

    // Waits until the leader streams to both others over RDMA.
    static void expect_streaming(const Cluster& cluster, int leader) {
        for (int peer = 1; peer <= Cluster::kReplicas; ++peer) {
            if (peer == leader) continue;
            EXPECT_TRUE(until([&] {
                const std::string line = peer_line(cluster, leader, peer);
                return line.find("path=rdma (") != std::string::npos &&
                       line.find("lane=streaming") != std::string::npos;
            })) << peer_line(cluster, leader, peer);
        }
    }

    // Waits until a follower has applied as much as the leader has committed; then their books agree.
    static void expect_equal(const Cluster& cluster, int leader, int follower) {
        EXPECT_TRUE(until([&] {
            return cluster.number(follower, "replication", "applied") ==
                       cluster.number(leader, "replication", "committed") &&
                   cluster.number(follower, "stats", "commands_applied") ==
                       cluster.number(leader, "stats", "commands_applied");
        })) << "r" << follower << " has not caught up";
    }
};

TEST_F(CounterRdma, killed_leaders_lose_and_double_nothing) {
    kill_leaders(rounds(6), [](int) { return over("rdma"); }, expect_streaming);
}

// Two have RDMA and one does not; which one goes round.
TEST_F(CounterRdma, killed_leaders_of_mixed_groups_lose_and_double_nothing) {
    int without = 0;
    const auto network = [&](int round) {
        without = round % Cluster::kReplicas + 1;
        return over("auto", without);
    };
    kill_leaders(rounds(6), network, [&](const Cluster& cluster, int leader) {
        for (int peer = 1; peer <= Cluster::kReplicas; ++peer) {
            if (peer == leader) continue;
            const std::string path = without == leader || without == peer ? "path=tcp" : "path=rdma (";
            EXPECT_TRUE(until([&] { return peer_line(cluster, leader, peer).find(path) != std::string::npos; }))
                << "r" << leader << " to r" << peer << ": " << peer_line(cluster, leader, peer);
        }
    });
}

// In memory mode a follower's processor takes no part in a commit: with one replica dead and the other stopped, the
// leader and the memory of the stopped one are a majority.
TEST_F(CounterRdma, stopped_follower_carries_commits_at_full_speed_and_catches_up) {
    Cluster cluster({"--durability", "memory"}, over("rdma"));
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    expect_streaming(cluster, leader);
    const int stopped = leader % 3 + 1;
    const int dead = stopped % 3 + 1;
    Running load(cluster, {"127.0.0.1:" + std::to_string(cluster.client_port(leader))});
    ASSERT_TRUE(load.wait_for_progress(500));
    cluster.signal(dead, SIGKILL);
    ASSERT_TRUE(load.wait_for_progress(500));

    const auto rate = [&](std::chrono::milliseconds time) {
        const std::uint64_t before = load.acked();
        const auto start = steady_clock::now();
        std::this_thread::sleep_for(time);
        return static_cast<double>(load.acked() - before) /
               std::chrono::duration<double>(steady_clock::now() - start).count();
    };
    const std::string ballot = cluster.info(leader, "replication", "ballot");
    const double running = rate(std::chrono::seconds(3));
    cluster.signal(stopped, SIGSTOP);
    // More than an election time-out: the leader keeps its place by probes of that memory.
    const double standing = rate(std::chrono::seconds(6));
    EXPECT_EQ(cluster.info(leader, "replication", "role"), "leader");
    EXPECT_EQ(cluster.info(leader, "replication", "ballot"), ballot);
    // A linearizable read takes no more than its memory either.
    EXPECT_NE(TestClient(cluster.client_port(leader)).ask("GET counter\r\n").find('$'), std::string::npos);
    std::printf("increments a second: %.0f while the follower ran, %.0f while it was stopped\n", running, standing);
    // Other work on the machine may slow one of the two down; that something waits would show as a standstill.
    EXPECT_GT(standing, running / 3);

    cluster.signal(stopped, SIGCONT);
    ASSERT_TRUE(load.wait_for_progress(500));
    load.finish();
    expect_equal(cluster, leader, stopped);
}

// What was committed through memory alone outlives the leader: its followers find it there when they wake.
TEST_F(CounterRdma, commits_into_stopped_memory_survive_the_leader) {
    Cluster cluster({"--durability", "memory"}, over("rdma"));
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    expect_streaming(cluster, leader);
    Running load(cluster, {"127.0.0.1:" + std::to_string(cluster.client_port(leader))});
    ASSERT_TRUE(load.wait_for_progress(500));
    for (int id = 1; id <= Cluster::kReplicas; ++id)
        if (id != leader) cluster.signal(id, SIGSTOP);
    ASSERT_TRUE(load.wait_for_progress(2000)) << "commits need the processor of a follower";
    LoadReport report = load.finish();
    ASSERT_EQ(report.unknown, 0U);
    cluster.signal(leader, SIGKILL);
    for (int id = 1; id <= Cluster::kReplicas; ++id)
        if (id != leader) cluster.signal(id, SIGCONT);
    const int next = cluster.wait_for_leader();
    ASSERT_NE(next, 0);
    const std::string value = std::to_string(report.value_after);
    EXPECT_TRUE(until([&] {
        return TestClient(cluster.client_port(next)).ask("GET counter\r\n") ==
               "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    })) << TestClient(cluster.client_port(next)).ask("GET counter\r\n") << " instead of " << value;
    EXPECT_EQ(report.value_after - report.value_before, static_cast<std::int64_t>(report.acked));
    const int other = 6 - leader - next;
    expect_equal(cluster, next, other);
}

// However many entries it carries, a commit takes at most one WRITE for each follower.
TEST_F(CounterRdma, commit_takes_at_most_one_write_per_follower) {
    Cluster cluster({"--durability", "memory"}, over("rdma"));
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    expect_streaming(cluster, leader);
    struct Counts {
        std::uint64_t entries;
        std::uint64_t writes;
    };
    // The numbers are those of the last heartbeat: they are taken once they stand still.
    const auto counts = [&] {
        Counts now{};
        EXPECT_TRUE(until([&] {
            now = {cluster.number(leader, "stats", "entries_committed"),
                   cluster.number(leader, "stats", "writes_posted")};
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            return now.entries == cluster.number(leader, "stats", "entries_committed") &&
                   now.writes == cluster.number(leader, "stats", "writes_posted");
        }));
        return now;
    };
    const Counts start = counts();
    TestClient client(cluster.client_port(leader));
    constexpr std::uint64_t kAlone = 200;
    for (std::uint64_t i = 0; i < kAlone; ++i) client.ask("INCR alone\r\n");
    const Counts alone = counts();
    EXPECT_EQ(alone.entries - start.entries, kAlone);
    EXPECT_GE(alone.writes - start.writes, kAlone);
    EXPECT_LE(alone.writes - start.writes, 2 * kAlone);

    // Entries that come while a WRITE is under way go together in the next one.
    {
        std::vector<TestClient> clients;
        for (int i = 0; i < 64; ++i) clients.emplace_back(cluster.client_port(leader));
        for (int turn = 0; turn < 20; ++turn) {
            for (TestClient& one : clients) one.send("INCR together\r\n");
            for (TestClient& one : clients) one.receive();
        }
    }
    const Counts together = counts();
    const std::uint64_t entries = together.entries - alone.entries;
    const std::uint64_t writes = together.writes - alone.writes;
    EXPECT_EQ(entries, 64U * 20U);
    EXPECT_LT(writes, entries) << "with two followers, that is less than half a WRITE for an entry and follower";
    std::printf("one at a time: %llu WRITEs for %llu entries; 64 at a time: %llu for %llu\n",
                static_cast<unsigned long long>(alone.writes - start.writes),
                static_cast<unsigned long long>(alone.entries - start.entries),
                static_cast<unsigned long long>(writes), static_cast<unsigned long long>(entries));
}

}  // namespace
}  // namespace lockstep::counter
