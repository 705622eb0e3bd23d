// Services that propose from their callbacks: those proposals go to the log at once while there is room.
#include "sim/cluster.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <map>
#include <string>

namespace lockstep::sim {
namespace {

// `depth` proposals open at a time; each callback of an applied one proposes the next.
class Loop {
 public:
    Loop(Cluster& cluster, ReplicaId leader, std::size_t bytes) : cluster_(cluster), leader_(leader), bytes_(bytes) {}

    void start(std::size_t depth) {
        for (std::size_t i = 0; i < depth; ++i) propose();
    }
    const std::map<std::string, Fate>& ended() const { return ended_; }
    std::size_t at_once() const { return at_once_; }
    std::size_t queued() const { return queued_; }

 private:
    void propose() {
        const std::string name = std::to_string(++proposed_);
        std::string command = name;
        command.resize(bytes_, ' ');
        const Index before = cluster_.core(leader_).end().index;
        const bool taken = cluster_.propose(leader_, command, [this, name](const Outcome& outcome) {
            ASSERT_TRUE(ended_.emplace(name, outcome.fate).second) << "ended twice";
            if (outcome.fate == Fate::applied) propose();
        });
        ASSERT_TRUE(taken);
        (cluster_.core(leader_).end().index > before ? at_once_ : queued_) += 1;
    }

    Cluster& cluster_;
    const ReplicaId leader_;
    const std::size_t bytes_;
    std::uint64_t proposed_ = 0;
    std::size_t at_once_ = 0;
    std::size_t queued_ = 0;
    std::map<std::string, Fate> ended_;
};

TEST(ClosedLoop, proposals_of_callbacks_are_appended_at_once_and_applied_once_even_where_the_ring_is_full) {
    spdlog::set_level(spdlog::level::off);
    Cluster::Options options;
    options.ring_bytes = 8192;
    options.seed = 7;
    Cluster cluster(options);
    cluster.start_all();
    ASSERT_TRUE(cluster.run_until(3000 * kMs, [&] { return cluster.leader().has_value(); }));
    const ReplicaId leader = *cluster.leader();
    constexpr std::size_t kFew = 4;
    constexpr std::size_t kMany = 24;  // more than the ring has room for
    Loop loop(cluster, leader, 400);
    loop.start(kFew);
    ASSERT_TRUE(cluster.run_until(10'000 * kMs, [&] { return loop.ended().size() >= 1000; }));
    EXPECT_GT(loop.at_once(), 500U);
    loop.start(kMany);
    ASSERT_TRUE(cluster.run_until(10'000 * kMs, [&] { return loop.ended().size() >= 2000; }));
    EXPECT_GT(loop.queued(), kFew + kMany) << "the ring was never full";

    cluster.driver(leader).stop();
    std::map<std::string, int> applied;
    for (const auto& [index, command] : cluster.recorder(leader).commands()) ++applied[command];
    std::size_t unknown = 0;
    for (const auto& [command, fate] : loop.ended()) {
        const int times = applied.contains(command) ? applied.at(command) : 0;
        if (fate == Fate::applied) EXPECT_EQ(times, 1) << command;
        else EXPECT_LE(times, fate == Fate::unknown ? 1 : 0) << command;
        unknown += fate == Fate::unknown ? 1 : 0;
    }
    EXPECT_EQ(loop.ended().size(), loop.at_once() + loop.queued()) << "a proposal has no end";
    EXPECT_LE(unknown, kFew + kMany);
}

}  // namespace
}  // namespace lockstep::sim
