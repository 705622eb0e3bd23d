// A follower in a process of its own, that is killed or stopped from outside.
#include "transport/tcp/fabric.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::transport::contract {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRing = std::uint64_t{16} << 20;

tcp::TcpOptions options_of(std::uint8_t id) {
    tcp::TcpOptions options;
    options.cluster_id = 7;
    options.id = {id};
    options.incarnation = {id};
    options.ring_bytes = kRing;
    options.peers = {{{static_cast<std::uint8_t>(3 - id)}, "127.0.0.1", 0}};
    return options;
}

// The child: opens a lane for r1, says where it is, and polls until it is killed.
struct Follower {
    std::uint16_t port = 0;
    LaneAddress address;
    pid_t process = 0;

    // Before this process has any other thread.
    void start() {
        int pipe_ends[2];
        ASSERT_EQ(pipe(pipe_ends), 0);
        process = fork();
        ASSERT_GE(process, 0);
        if (process == 0) live(pipe_ends[1]);
        ::close(pipe_ends[1]);
        EXPECT_EQ(read(pipe_ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
        EXPECT_EQ(read(pipe_ends[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
        ::close(pipe_ends[0]);
    }

    [[noreturn]] static void live(int out) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        auto fabric = tcp::TcpFabric::open(options_of(2));
        if (!fabric) _exit(1);
        const auto lane = fabric.value()->open_incoming({1}, {1}, {});
        const std::uint16_t port = fabric.value()->listen_port();
        if (!lane || write(out, &port, sizeof port) < 0 || write(out, &lane.value(), sizeof lane.value()) < 0) _exit(1);
        std::vector<Event> events;
        for (;;) {
            events.clear();
            fabric.value()->poll(10ms, events);
        }
    }

    void kill_now() {
        kill(process, SIGKILL);
        waitpid(process, nullptr, 0);
        process = 0;
    }
    ~Follower() {
        if (process != 0) kill_now();
    }
};

class Process : public testing::Test {
 protected:
    void SetUp() override {
        ASSERT_NO_FATAL_FAILURE(follower_.start());
        auto opened = tcp::TcpFabric::open(options_of(1));
        ASSERT_TRUE(opened.ok());
        fabric_ = std::move(opened).value();
        fabric_->set_peer_address({2}, "127.0.0.1", follower_.port);
        ASSERT_TRUE(until([&] { return up_; }));
        fabric_->connect_lane(kLane, {2}, follower_.address);
        ASSERT_TRUE(fabric_->write(kLane, {0}, 64));
        fabric_->flush();
        ASSERT_TRUE(until([&] { return landed_ == 1; }));
    }

    bool until(const std::function<bool()>& done, std::chrono::milliseconds limit = 10s) {
        const auto deadline = std::chrono::steady_clock::now() + limit;
        while (!done()) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            events_.clear();
            fabric_->poll(1ms, events_);
            for (const Event& event : events_) {
                up_ |= event.kind == EventKind::peer_up;
                down_ |= event.kind == EventKind::peer_down;
                dead_ |= event.kind == EventKind::peer_down && event.suspect_dead;
                broken_ |= event.kind == EventKind::lane_broken;
                boards_ += event.kind == EventKind::board;
                if (event.kind == EventKind::landed) landed_ = event.count;
            }
        }
        return true;
    }

    static constexpr LaneId kLane{1};
    Follower follower_;
    std::unique_ptr<tcp::TcpFabric> fabric_;
    std::vector<Event> events_;
    bool up_ = false, down_ = false, dead_ = false, broken_ = false;
    int boards_ = 0;
    std::uint64_t landed_ = 0;
};

TEST_F(Process, that_is_killed_is_noticed_at_once) {
    const auto start = std::chrono::steady_clock::now();
    follower_.kill_now();
    ASSERT_TRUE(until([&] { return dead_ && broken_; }));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
}

TEST_F(Process, that_is_killed_in_the_middle_of_writes_leaves_the_rest_unknown) {
    std::uint64_t posted = 1;
    for (std::uint64_t at = 1 << 20; at < kRing; at += 1 << 20) posted += fabric_->write(kLane, {at}, 1 << 20);
    fabric_->flush();
    follower_.kill_now();
    ASSERT_TRUE(until([&] { return broken_; }));
    EXPECT_LE(landed_, posted);
    EXPECT_FALSE(fabric_->write(kLane, {kRing}, 64));
}

// Nothing lands at a process that is stopped: it is its own thread that copies. RDMA would go on (docs/transport.md).
TEST_F(Process, that_is_stopped_lands_nothing_and_goes_on_where_it_was) {
    kill(follower_.process, SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(follower_.process, &status, WUNTRACED), follower_.process);
    ASSERT_TRUE(WIFSTOPPED(status));
    ASSERT_TRUE(fabric_->write(kLane, {64}, 64));
    fabric_->flush();
    fabric_->read_board({2});
    EXPECT_FALSE(until([&] { return landed_ == 2 || boards_ > 0; }, 100ms));
    EXPECT_FALSE(down_);  // a stopped process is not a dead one: that is for heartbeats to find
    kill(follower_.process, SIGCONT);
    EXPECT_TRUE(until([&] { return landed_ == 2 && boards_ == 1; }));
    EXPECT_FALSE(broken_);
}

}  // namespace
}  // namespace lockstep::transport::contract
