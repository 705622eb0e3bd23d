// Counters whose power is lost, and whose disks fail, are full, hang and rot: nothing that was acknowledged is missing,
// whoever cannot go on stops by itself and says why, and the others do go on.
#include "tests/integration/counter/rounds.h"
#include "tests/integration/faults/journal.h"
#include "tests/integration/faults/power_loss.h"
#include "tests/unit/counter/test_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string faults_folder(const std::string& data_folder) { return data_folder + "-faults"; }

Network on_faulty_disks() {
    Network network;
    network.run_by = [](int, const std::string& data_folder) -> std::vector<std::string> {
        const std::string side = faults_folder(data_folder);
        fs::create_directories(side);
        return {"env", "LD_PRELOAD=" LOCKSTEP_FAULTY_DISK, "LOCKSTEP_FAULTS=" + side,
                "LOCKSTEP_FAULTS_DATA=" + data_folder};
    };
    return network;
}

class CounterPower : public testing::Test {
 protected:
    static constexpr std::size_t kRingBytes = std::size_t{4} << 20;

    explicit CounterPower(std::vector<std::string> more = {}) {
        std::vector<std::string> flags = {"--durability", "durable", "--ring-bytes", std::to_string(kRingBytes),
                                          "--max-query-bytes", "524288"};
        flags.insert(flags.end(), more.begin(), more.end());
        cluster_.emplace(flags, on_faulty_disks());
    }
    void SetUp() override { ASSERT_NE(cluster().wait_for_leader(), 0); }

    Cluster& cluster() { return *cluster_; }
    std::string side(int id) { return faults_folder(cluster().data_folder(id)); }
    std::string control(int id) { return side(id) + "/" + faults::kControlName; }
    // From now on this goes wrong on the disk of `id` (tests/integration/faults/journal.h).
    void fault(int id, const std::string& line) {
        std::ofstream(side(id) + "/new") << line;
        fs::rename(side(id) + "/new", control(id));
    }
    void well_again(int id) { fs::remove(control(id)); }
    bool faulty(int id) { return fs::exists(control(id)); }
    // Power was lost after the process ended.
    void lose_power(int id, std::uint64_t seed) {
        const faults::Lost lost = faults::lose_power(cluster().data_folder(id), side(id), seed);
        lost_sectors_ += lost.sectors;
        lost_names_ += lost.names;
    }
    static int after(int id) { return id % Cluster::kReplicas + 1; }
    static bool within_a_minute(const std::function<bool()>& done) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!done()) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        return true;
    }
    std::uint64_t number(int id, const char* key) { return cluster().number(id, "replication", key); }
    // All lose power again and again, under load.
    void lose_power_in_rounds();
    // Once it was started.
    bool answers(int id) { return within_a_minute([&] { return port_answers(cluster().client_port(id)); }); }
    // It is as far as the other is now.
    bool catches_up(int id, int with) {
        const std::uint64_t applied = number(with, "applied");
        return within_a_minute([&] { return number(id, "applied") >= applied; });
    }
    // A replica that has stopped by itself ends, and says why.
    void expect_stopped(int id, const std::string& why) {
        EXPECT_EQ(cluster().wait_for_end(id), 1) << cluster().log_of(id);
        EXPECT_THAT(cluster().log_of(id), HasSubstr("stops: "));
        EXPECT_THAT(cluster().log_of(id), HasSubstr(why));
    }
    // Commands of so many bytes in all go through the leader.
    void fill(int leader, std::size_t bytes) {
        constexpr std::size_t kValueBytes = 8000;
        constexpr std::size_t kAtOnce = 32;
        std::string commands;
        for (std::size_t i = 0; i < kAtOnce; ++i)
            commands += "SET filled" + std::to_string(i) + " " + std::string(kValueBytes, 'x') + "\r\n";
        TestClient client(cluster().client_port(leader));
        for (std::size_t sent = 0; sent < bytes; sent += kAtOnce * kValueBytes) {
            client.send(commands);
            EXPECT_THAT(client.receive(kAtOnce), HasSubstr("+OK"));
        }
    }
    // A bit at that place turns over, or back.
    static void flip(const std::string& path, std::uint64_t at) {
        std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekg(static_cast<std::streamoff>(at));
        const int byte = bytes.get();
        bytes.seekp(static_cast<std::streamoff>(at));
        bytes.put(static_cast<char>(byte ^ 4));
        EXPECT_TRUE(bytes.good()) << path;
    }
    // It is started, and refuses.
    Finished refused(int id) {
        std::vector<std::string> args = cluster().command(id);
        std::erase(args, "--form");
        return run_program(args);
    }

    std::optional<Cluster> cluster_;
    std::uint64_t lost_sectors_ = 0;
    std::uint64_t lost_names_ = 0;
};

void CounterPower::lose_power_in_rounds() {
    Running load(cluster());
    const int count = rounds(10);
    for (int round = 0; round < count && !HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        ASSERT_TRUE(load.wait_for_progress(200));
        for (int id = 1; id <= Cluster::kReplicas; ++id) cluster().signal(id, SIGKILL);
        for (int id = 1; id <= Cluster::kReplicas; ++id)
            lose_power(id, static_cast<std::uint64_t>(round * Cluster::kReplicas + id));
        for (int id = 1; id <= Cluster::kReplicas; ++id) cluster().restart(id);
        ASSERT_NE(cluster().wait_for_leader(), 0);
    }
    ASSERT_TRUE(load.wait_for_progress(200));
    const LoadReport report = load.finish();
    EXPECT_GT(lost_sectors_, 0u) << "nothing was lost: the test shows nothing";
    std::printf("%llu increments acknowledged, %llu unknown; lost: %llu sectors, %llu names\n",
                static_cast<unsigned long long>(report.acked), static_cast<unsigned long long>(report.unknown),
                static_cast<unsigned long long>(lost_sectors_), static_cast<unsigned long long>(lost_names_));
}

TEST_F(CounterPower, lost_by_all_at_once_takes_nothing_that_was_acknowledged) { lose_power_in_rounds(); }

// S13, of the log and of the hard state, of a leader and of a follower.
TEST_F(CounterPower, one_failed_call_stops_its_replica_and_a_restart_is_consistent) {
    struct Case {
        std::string call;
        bool leads;
    };
    Running load(cluster());
    std::uint64_t round = 0;
    const Case cases[] = {{"sync wal-", true},
                          {"sync wal-", false},
                          {"write wal-", true},
                          {"write wal-", false},
                          {"sync hard_state", false}};
    for (const Case& one : cases) {
        SCOPED_TRACE("eio " + one.call + (one.leads ? ", the leader" : ", a follower"));
        ASSERT_TRUE(load.wait_for_progress(100));
        const int leader = cluster().wait_for_leader();
        ASSERT_NE(leader, 0);
        const int victim = one.leads ? leader : after(leader);
        const bool promises = one.call == "sync hard_state";
        fault(victim, "eio " + one.call);
        if (promises) cluster().signal(leader, SIGSTOP);  // so that the others elect
        expect_stopped(victim, "Input/output error");
        if (promises) cluster().signal(leader, SIGCONT);
        ASSERT_TRUE(load.wait_for_progress(100)) << "the others go on";
        lose_power(victim, ++round);
        cluster().restart(victim);
        ASSERT_TRUE(answers(victim));
        ASSERT_TRUE(catches_up(victim, after(victim))) << cluster().log_of(victim);
    }
    load.finish();
}

// A log that finds no room stops its replica, and goes on when there is some and it is started again.
TEST_F(CounterPower, full_disk_stops_its_replica_until_there_is_room) {
    Running load(cluster());
    ASSERT_TRUE(load.wait_for_progress(100));
    const int victim = after(cluster().wait_for_leader());
    fault(victim, "full 100000 a");  // wal-..., spare
    expect_stopped(victim, "No space left on device");
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("free space on its file system"));
    ASSERT_TRUE(load.wait_for_progress(100));
    EXPECT_NE(refused(victim).status, 0) << "there is no room yet";
    well_again(victim);
    cluster().restart(victim);
    ASSERT_TRUE(answers(victim));
    ASSERT_TRUE(catches_up(victim, after(victim))) << cluster().log_of(victim);
    load.finish();
}

// Section 8: a replica whose disk hangs is no leader, and no hindrance.
TEST_F(CounterPower, leader_whose_disk_hangs_is_replaced_and_a_follower_is_not_waited_for) {
    Running load(cluster());
    for (const bool leads : {false, true, false}) {
        SCOPED_TRACE(leads ? "the leader" : "a follower");
        ASSERT_TRUE(load.wait_for_progress(100));
        const int leader = cluster().wait_for_leader();
        ASSERT_NE(leader, 0);
        const int victim = leads ? leader : after(leader);
        fault(victim, "hang sync wal-");
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what hangs is under way
        ASSERT_TRUE(load.wait_for_progress(500)) << "the others go on";
        if (leads) {
            EXPECT_TRUE(within_a_minute([&] {
                return cluster().info(after(victim), "replication", "role") == "leader" ||
                       cluster().info(6 - victim - after(victim), "replication", "role") == "leader";
            }));
        } else {
            EXPECT_EQ(cluster().info(leader, "replication", "role"), "leader");
        }
        EXPECT_TRUE(faulty(victim));
        well_again(victim);
        ASSERT_TRUE(catches_up(victim, after(victim))) << cluster().log_of(victim);
    }
    load.finish();
}

// Bits that turn over at rest are found by those who look, and by who starts: it gets what it lacks from the others,
// and its vote is good again. Nothing mends what it has promised.
TEST_F(CounterPower, rot_is_found_by_name_and_repaired) {
    Running load(cluster());
    ASSERT_TRUE(load.wait_for_progress(3000));
    const int victim = after(cluster().wait_for_leader());
    ASSERT_EQ(cluster().stop(victim), 0);
    const std::string folder = cluster().data_folder(victim);
    const auto verify = [&] { return run_program({LOCKSTEP_CLI, "log", "verify", folder}); };
    EXPECT_EQ(verify().status, 0) << verify().output;

    const std::string first = "wal-00000001-0000000000000000";
    flip(folder + "/log/" + first, 12'288 + 64 * 100 + 10);
    EXPECT_NE(verify().status, 0);
    EXPECT_THAT(verify().output, HasSubstr(first));
    cluster().restart(victim);
    ASSERT_TRUE(cluster().is_taken_in(victim)) << cluster().log_of(victim);
    EXPECT_THAT(cluster().log_of(victim), HasSubstr(first));
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("does not vote"));
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("is made up for"));

    // With the leader away nothing goes on without its vote and its disk.
    const int away = cluster().wait_for_leader();
    cluster().signal(away, SIGKILL);
    ASSERT_TRUE(load.wait_for_progress(1000)) << cluster().log_of(victim);
    cluster().restart(away);
    ASSERT_TRUE(answers(away));
    load.finish();
    ASSERT_EQ(cluster().stop(victim), 0);
    EXPECT_EQ(verify().status, 0) << verify().output;

    // One slot of the hard state is enough, none is not.
    flip(folder + "/log/hard_state", 40);
    flip(folder + "/log/hard_state", 4096 + 40);
    EXPECT_EQ(refused(victim).status, 1);
    EXPECT_THAT(refused(victim).output, HasSubstr("neither slot of hard_state can be read"));
    EXPECT_NE(verify().status, 0);
    EXPECT_THAT(verify().output, HasSubstr("hard_state"));
    flip(folder + "/log/hard_state", 40);
    cluster().restart(victim);
    ASSERT_TRUE(answers(victim));
    ASSERT_TRUE(catches_up(victim, away)) << cluster().log_of(victim);
}

class CounterSnapshotPower : public CounterPower {
 protected:
    CounterSnapshotPower() : CounterPower({"--snapshot-bytes", "262144"}) {}
};

// The same where logs go behind snapshots all the time.
TEST_F(CounterSnapshotPower, lost_by_all_at_once_takes_nothing_that_was_acknowledged) { lose_power_in_rounds(); }

// Nothing depends on a snapshot that is not there yet: its replica goes on, and takes one when there is room.
TEST_F(CounterSnapshotPower, full_disk_costs_a_snapshot_and_no_more) {
    Running load(cluster());
    const int victim = after(cluster().wait_for_leader());
    fault(victim, "full 0 snap-taken");
    ASSERT_TRUE(within_a_minute([&] {
        return cluster().log_of(victim).find("cannot take a snapshot") != std::string::npos;
    }));
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("No space left on device"));
    EXPECT_EQ(number(victim, "snapshot"), 0u);
    ASSERT_TRUE(catches_up(victim, after(victim)));
    well_again(victim);
    ASSERT_TRUE(within_a_minute([&] { return number(victim, "snapshot") != 0; })) << cluster().log_of(victim);
    load.finish();
}

// Section 8: one that comes back by a snapshot finds no room for it. Nobody waits for it, and it says what is missing.
TEST_F(CounterSnapshotPower, full_disk_keeps_a_follower_behind_until_there_is_room) {
    Running load(cluster());
    const int leader = cluster().wait_for_leader();
    const int victim = after(leader);
    cluster().signal(victim, SIGKILL);
    fill(leader, 4 * kRingBytes);
    fault(victim, "full 0 snap-received");
    cluster().restart(victim);
    ASSERT_TRUE(answers(victim));
    EXPECT_TRUE(within_a_minute([&] {
        return cluster().info(victim, "replication", "note").find("No space left on device") != std::string::npos;
    })) << cluster().log_of(victim);
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("cannot take a snapshot from "));
    ASSERT_TRUE(load.wait_for_progress(200)) << "the others go on";
    well_again(victim);
    ASSERT_TRUE(catches_up(victim, leader)) << cluster().log_of(victim);
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("installs the snapshot"));
    load.finish();
}

// S14: snapshots rot while their replica is down. Where the log is there from its beginning, it goes on with that. Else
// it does not come back as if it had lost nothing, and what is on its disk stays for who looks.
TEST_F(CounterSnapshotPower, rotten_snapshots_are_found_and_named) {
    const int leader = cluster().wait_for_leader();
    const int victim = after(leader);
    const std::string folder = cluster().data_folder(victim);
    // They rot, or are again what they were; gives the newest one's path.
    const auto flip_all = [&] {
        std::string newest;
        for (const auto& entry : fs::directory_iterator(folder + "/snapshots")) {
            flip(entry.path(), fs::file_size(entry.path()) / 2);
            newest = std::max(newest, entry.path().string());
        }
        return newest;
    };
    const auto end_and_rot = [&] {
        const std::uint64_t before = number(victim, "snapshot");
        EXPECT_TRUE(within_a_minute([&] {
            fill(leader, 1);
            return number(victim, "snapshot") > before;
        }));
        EXPECT_EQ(cluster().stop(victim), 0);
        const std::string newest = flip_all();
        const Finished verified = run_program({LOCKSTEP_CLI, "snapshot", "verify", folder});
        EXPECT_NE(verified.status, 0);
        EXPECT_THAT(verified.output, HasSubstr(fs::path(newest).filename().string()));
        return newest;
    };
    const auto comes_back = [&] {
        EXPECT_TRUE(answers(victim));
        EXPECT_TRUE(catches_up(victim, leader)) << cluster().log_of(victim);
    };

    std::string newest = end_and_rot();
    cluster().restart(victim);
    comes_back();
    EXPECT_THAT(cluster().log_of(victim), HasSubstr(fs::path(newest).filename().string()));
    EXPECT_THAT(cluster().log_of(victim), HasSubstr("it has rotted"));
    EXPECT_FALSE(fs::exists(newest));

    fill(leader, 4 * kRingBytes);  // the log's beginning goes
    comes_back();
    newest = end_and_rot();
    const Finished start = refused(victim);
    EXPECT_EQ(start.status, 1);
    EXPECT_THAT(start.output, HasSubstr(fs::path(newest).filename().string()));
    EXPECT_THAT(start.output, HasSubstr("--join"));
    flip_all();
    cluster().restart(victim);
    comes_back();

    // Its peers have it all.
    end_and_rot();
    fs::rename(folder, folder + "-rotten");
    cluster().restart(victim, {"--join"});
    EXPECT_TRUE(cluster().is_taken_in(victim)) << cluster().log_of(victim);
    comes_back();
}

// A sync that fails is another matter: nobody knows what the file holds (S13).
TEST_F(CounterSnapshotPower, failed_sync_of_a_snapshot_stops_its_replica) {
    Running load(cluster());
    const int victim = after(cluster().wait_for_leader());
    fault(victim, "eio sync snap-taken");
    expect_stopped(victim, "Input/output error");
    lose_power(victim, 1);
    cluster().restart(victim);
    ASSERT_TRUE(answers(victim));
    ASSERT_TRUE(catches_up(victim, after(victim))) << cluster().log_of(victim);
    load.finish();
}

}  // namespace
}  // namespace lockstep::counter
