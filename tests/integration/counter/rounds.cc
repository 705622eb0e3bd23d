#include "tests/integration/counter/rounds.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace lockstep::counter {

int rounds(int by_default) {
    const char* given = std::getenv("LOCKSTEP_ROUNDS");
    return given == nullptr ? by_default : std::atoi(given);
}

Running::Running(const Cluster& cluster, std::vector<std::string> servers) {
    options_.servers = servers.empty() ? cluster.servers() : std::move(servers);
    options_.seconds = 120;
    options_.connections = 6;
    options_.pipeline = 8;
    options_.reply_timeout_ms = 1000;
    options_.quiet = true;
    report_ = std::async(std::launch::async, [this] { return run_load(options_, &control_); });
}

bool Running::wait_for_progress(std::uint64_t increments) const {
    const std::uint64_t target = control_.acked() + increments;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (control_.acked() < target) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

LoadReport Running::finish() {
    control_.finish();
    const auto report = report_.get();
    EXPECT_TRUE(report.ok()) << report.error().message();
    if (!report) return {};
    for (const std::string& violation : report.value().violations) ADD_FAILURE() << violation;
    EXPECT_TRUE(report.value().value_read);
    return report.value();
}

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

void kill_leaders(int count, const std::function<Network(int round)>& network,
                  const std::function<void(const Cluster& cluster, int leader)>& before) {
    std::vector<std::uint64_t> gaps;
    std::uint64_t acked = 0;
    std::uint64_t unknown = 0;
    for (int round = 0; round < count && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        Cluster cluster({"--durability", "memory"}, network(round));
        const int leader = cluster.wait_for_leader();
        ASSERT_NE(leader, 0);
        if (before) before(cluster, leader);
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

}  // namespace lockstep::counter
