// Leaders that die or fall asleep under load: nothing acknowledged is lost, nothing is counted twice.
//
// LOCKSTEP_ROUNDS sets how many rounds each test runs (50 by default); each round has a fresh cluster.
#include "tests/integration/counter/rounds.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <string>
#include <vector>

namespace lockstep::counter {
namespace {

TEST(CounterFailover, killed_leaders_lose_and_double_nothing) {
    kill_leaders(rounds(50), [](int) { return Network{}; });
}

TEST(CounterFailover, paused_leaders_lose_and_double_nothing) {
    std::vector<std::uint64_t> gaps;
    for (int round = 0; round < rounds(50) && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        Cluster cluster({"--durability", "memory"});
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
