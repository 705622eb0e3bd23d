// A follower in a process of its own, that is killed, stopped or has children; what a child gets of a device; and what
// a process is told that may not lock enough memory.
#include "tests/contract/rdma/follower.h"
#include "tests/contract/rdma/rdma_world.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::transport::contract {
namespace {

using namespace std::chrono_literals;

class FollowerProcess {
 public:
    ~FollowerProcess() {
        kill_now();
        if (hello.child > 0) kill(hello.child, SIGKILL);
    }
    void start(const char* flag = nullptr) {
        int ends[2];
        ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        std::string program = LOCKSTEP_RDMA_FOLLOWER;
        std::string word = flag == nullptr ? "" : flag;
        char* arguments[] = {program.data(), flag == nullptr ? nullptr : word.data(), nullptr};
        ASSERT_EQ(posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        EXPECT_EQ(read(ends[0], &hello, sizeof hello), static_cast<ssize_t>(sizeof hello)) << "it did not start";
        ::close(ends[0]);
    }
    void stop_it() const {
        kill(process, SIGSTOP);
        int status = 0;
        ASSERT_EQ(waitpid(process, &status, WUNTRACED), process);
        ASSERT_TRUE(WIFSTOPPED(status));
    }
    void kill_now() {
        if (process == 0) return;
        kill(process, SIGKILL);
        waitpid(process, nullptr, 0);
        process = 0;
    }

    pid_t process = 0;
    FollowerHello hello;
};

class RdmaProcess : public testing::Test {
 protected:
    void SetUp() override {
        if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
    }
    // r1, in this process, with a lane to r2 in another one.
    void start(const char* flag = nullptr) {
        ASSERT_NO_FATAL_FAILURE(follower_.start(flag));
        rdma::RdmaOptions options = rdma_options({.id = {1}});
        const std::string host = rdma_options({.id = {2}}).listen_host;
        options.peers = {{{2}, host, follower_.hello.port}};
        auto opened = rdma::RdmaFabric::open(options);
        ASSERT_TRUE(opened.ok()) << opened.error().message();
        fabric_ = std::move(opened).value();
        ASSERT_TRUE(until([&] { return up_; })) << fabric_->path({2});
        fabric_->connect_lane(kLane, {2}, follower_.hello.address);
        ASSERT_TRUE(lands({0}));
    }
    bool until(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
        const auto deadline = std::chrono::steady_clock::now() + limit;
        while (!done()) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            events_.clear();
            fabric_->poll(1ms, events_);
            for (const Event& event : events_) {
                up_ |= event.kind == EventKind::peer_up;
                dead_ |= event.kind == EventKind::peer_down && event.suspect_dead;
                down_ |= event.kind == EventKind::peer_down;
                broken_ |= event.kind == EventKind::lane_broken;
                boards_ += event.kind == EventKind::board;
                if (event.kind == EventKind::landed) landed_ = event.count;
            }
        }
        return true;
    }
    bool post(Position at, std::uint64_t bytes = 64) {
        if (!fabric_->write(kLane, at, bytes)) return false;
        ++posted_;
        fabric_->flush();
        return true;
    }
    bool lands(Position at) {
        return post(at) && until([&] { return landed_ == posted_; });
    }

    static constexpr LaneId kLane{1};
    FollowerProcess follower_;
    std::unique_ptr<rdma::RdmaFabric> fabric_;
    std::vector<Event> events_;
    bool up_ = false, down_ = false, dead_ = false, broken_ = false;
    int boards_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t landed_ = 0;
};

TEST_F(RdmaProcess, that_is_killed_is_noticed_at_once) {
    ASSERT_NO_FATAL_FAILURE(start());
    const auto start = std::chrono::steady_clock::now();
    follower_.kill_now();
    ASSERT_TRUE(until([&] { return dead_ && broken_; }));
    // Its control link says so; the queue pair's own time-outs would take longer.
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
    EXPECT_FALSE(fabric_->write(kLane, {64}, 64));
}

TEST_F(RdmaProcess, that_is_killed_in_the_middle_of_writes_leaves_the_rest_unknown) {
    ASSERT_NO_FATAL_FAILURE(start());
    for (std::uint64_t at = 1 << 14; at < 1 << 20; at += 1 << 14) post({at}, 1 << 14);
    follower_.kill_now();
    ASSERT_TRUE(until([&] { return broken_; }));
    EXPECT_LE(landed_, posted_);
    EXPECT_FALSE(post({std::uint64_t{1} << 20}));
}

// The difference to TCP (docs/transport.md): a process that stands still is written to and read from all the same.
TEST_F(RdmaProcess, that_is_stopped_is_written_to_and_read_from) {
    ASSERT_NO_FATAL_FAILURE(start());
    ASSERT_NO_FATAL_FAILURE(follower_.stop_it());
    for (std::uint64_t at = 64; at <= 64 * 100; at += 64) ASSERT_TRUE(lands({at}));
    ASSERT_TRUE(fabric_->probe(kLane, 7));
    ++posted_;
    fabric_->flush();
    fabric_->read_board({2});
    EXPECT_TRUE(until([&] { return landed_ == posted_ && boards_ == 1; }));
    EXPECT_FALSE(down_);
    kill(follower_.process, SIGCONT);
    EXPECT_TRUE(lands({64 * 101}));
    EXPECT_FALSE(broken_);
}

// A child that lives on must not keep the queue pairs of its dead parent alive: they would go on to answer.
TEST_F(RdmaProcess, that_is_killed_leaves_nothing_to_its_child) {
    ASSERT_NO_FATAL_FAILURE(start("--with-child"));
    ASSERT_GT(follower_.hello.child, 0);
    follower_.kill_now();
    ASSERT_EQ(kill(follower_.hello.child, 0), 0) << "the child should outlive it";
    // No process of that machine says so, if the child holds the sockets too: the lane notices by itself.
    for (std::uint64_t at = 64; !broken_ && at < 64 * 10'000; at += 64) {
        post({at});
        until([&] { return broken_; }, 10ms);
    }
    EXPECT_TRUE(broken_);
    EXPECT_EQ(kill(follower_.hello.child, 0), 0);
}

int open_verbs_files() {
    int count = 0;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
        std::array<char, 256> target{};
        const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
        if (readlink(link.c_str(), target.data(), target.size() - 1) < 0) continue;
        const std::string to = target.data();
        count += to.find("infiniband") != std::string::npos || to.find("uverbs") != std::string::npos;
    }
    return count;
}

TEST_F(RdmaProcess, forks_children_without_its_device_and_memory) {
    ASSERT_NO_FATAL_FAILURE(start());
    ASSERT_GT(open_verbs_files(), 0);
    void* ring = fabric_->ring().data();
    const pid_t child = fork();
    if (child == 0) {
        unsigned char resident = 0;
        const bool mapped = mincore(ring, 4096, &resident) == 0;
        _exit((open_verbs_files() > 0 ? 1 : 0) + (mapped ? 2 : 0));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status) & 1, 0) << "the child has the device open";
    EXPECT_EQ(WEXITSTATUS(status) & 2, 0) << "the child has the ring mapped";
    // A program started without a fork handler's knowledge gets nothing either: descriptors are close-on-exec.
    EXPECT_EQ(std::system("! ls -l /proc/self/fd/ | grep -E 'infiniband|uverbs'"), 0);
    // The parent's queue pairs have not suffered.
    EXPECT_TRUE(lands({64}));
    EXPECT_FALSE(broken_);
}

TEST_F(RdmaProcess, that_may_not_lock_its_memory_is_told_what_to_do) {
    const std::string command = std::string(LOCKSTEP_RDMA_FOLLOWER) + " --memlock 1048576 2>&1";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    ASSERT_NE(pipe, nullptr);
    std::string text;
    std::array<char, 4096> bytes;
    for (std::size_t count = 0; (count = fread(bytes.data(), 1, bytes.size(), pipe.get())) > 0;)
        text.append(bytes.data(), count);
    EXPECT_NE(text.find("Cannot allocate memory"), std::string::npos) << text;
    EXPECT_NE(text.find("must be lockable, and the limit is 1 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("LimitMEMLOCK=infinity"), std::string::npos) << text;
    EXPECT_NE(text.find("smaller ring_bytes"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::transport::contract
