// Leaders that die or fall asleep under load: nothing acknowledged is lost, nothing is counted twice.
//
// LOCKSTEP_ROUNDS sets how many rounds each test runs (50 by default); each round has a fresh cluster.
#include "tests/integration/counter/cluster.h"
#include "tools/counter/load.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {
namespace {

int rounds() {
    const char* given = std::getenv("LOCKSTEP_ROUNDS");
    return given == nullptr ? 50 : std::atoi(given);
}

// A load against a cluster, on a thread of its own.
class Running {
 public:
    explicit Running(const Cluster& cluster) {
        options_.servers = cluster.servers();
        options_.seconds = 60;
        options_.connections = 6;
        options_.pipeline = 8;
        options_.reply_timeout_ms = 1000;
        options_.quiet = true;
        report_ = std::async(std::launch::async, [this] { return run_load(options_, &control_); });
    }
    ~Running() { control_.finish(); }

    // Waits until so many more increments are acknowledged; false after ten seconds.
    bool wait_for_progress(std::uint64_t increments) const {
        const std::uint64_t target = control_.acked() + increments;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (control_.acked() < target) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }
    void event() { control_.event(); }
    // Ends the load and checks its books.
    LoadReport finish() {
        control_.finish();
        const auto report = report_.get();
        EXPECT_TRUE(report.ok()) << report.error().message();
        if (!report) return {};
        for (const std::string& violation : report.value().violations) ADD_FAILURE() << violation;
        EXPECT_TRUE(report.value().value_read);
        return report.value();
    }

 private:
    LoadOptions options_;
    LoadControl control_;
    std::future<Result<LoadReport>> report_;
};

void print_times(const char* what, std::vector<std::uint64_t> times_us) {
    if (times_us.empty()) return;
    std::sort(times_us.begin(), times_us.end());
    const auto at = [&](double share) {
        return static_cast<double>(
                   times_us[static_cast<std::size_t>(share * static_cast<double>(times_us.size() - 1))]) /
               1e3;
    };
    std::printf("%s: %zu times, median %.2f ms, p90 %.2f ms, p99 %.2f ms, longest %.2f ms\n", what, times_us.size(),
                at(0.5), at(0.9), at(0.99), at(1.0));
}

TEST(CounterFailover, killed_leaders_lose_and_double_nothing) {
    std::vector<std::uint64_t> gaps;
    std::uint64_t acked = 0;
    std::uint64_t unknown = 0;
    for (int round = 0; round < rounds() && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        Cluster cluster;
        const int leader = cluster.wait_for_leader();
        ASSERT_NE(leader, 0);
        Running load(cluster);
        ASSERT_TRUE(load.wait_for_progress(1000));
        load.event();
        cluster.signal(leader, SIGKILL);
        ASSERT_TRUE(load.wait_for_progress(1000));
        const LoadReport report = load.finish();
        gaps.insert(gaps.end(), report.event_gaps_us.begin(), report.event_gaps_us.end());
        acked += report.acked;
        unknown += report.unknown;
    }
    print_times("SIGKILL of the leader to the next acknowledged increment", gaps);
    std::printf("%llu increments acknowledged, %llu unknown\n", static_cast<unsigned long long>(acked),
                static_cast<unsigned long long>(unknown));
}

TEST(CounterFailover, paused_leaders_lose_and_double_nothing) {
    std::vector<std::uint64_t> gaps;
    for (int round = 0; round < rounds() && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        Cluster cluster;
        const int leader = cluster.wait_for_leader();
        ASSERT_NE(leader, 0);
        Running load(cluster);
        ASSERT_TRUE(load.wait_for_progress(1000));
        load.event();
        cluster.signal(leader, SIGSTOP);
        // While it sleeps the others elect; increments sent to it wait or are unknown.
        ASSERT_TRUE(load.wait_for_progress(2000));
        cluster.signal(leader, SIGCONT);
        ASSERT_TRUE(load.wait_for_progress(2000));
        const LoadReport report = load.finish();
        gaps.insert(gaps.end(), report.event_gaps_us.begin(), report.event_gaps_us.end());
    }
    print_times("SIGSTOP of the leader to the next acknowledged increment", gaps);
}

}  // namespace
}  // namespace lockstep::counter
