// What tests of membership share.
#pragma once

#include "tests/sim/catch_up.h"

#include <cstdio>
#include <exception>
#include <initializer_list>
#include <vector>

namespace lockstep::sim {

// The first so many seeds, and those at which something was found.
inline std::vector<std::uint64_t> these_and(std::uint64_t many, std::initializer_list<std::uint64_t> found) {
    std::vector<std::uint64_t> all(found);
    for (std::uint64_t seed = 1; seed <= many; ++seed) all.push_back(seed);
    return all;
}

// Where a checker throws, no trace is shown.
struct TellsSeed {
    std::uint64_t seed;
    ~TellsSeed() {
        if (std::uncaught_exceptions() != 0)
            std::fprintf(stderr, "in seed %llu\n", static_cast<unsigned long long>(seed));
    }
};

// Who leads, who was lost and is another life now, and a third one.
struct Roles {
    ReplicaId leader;
    ReplicaId lost;
    ReplicaId follower;
};

class Membership : public CatchUp {
 protected:
    // All form and get on; then one who follows is lost, and comes back without its disk, which is put aside.
    static Roles lose_one(Cluster& cluster) {
        form(cluster);
        EXPECT_TRUE(progresses(cluster));
        Roles roles{};
        roles.leader = cluster.leader().value();
        roles.lost = other_than(roles.leader);
        roles.follower = other_than(roles.lost);
        cluster.crash(roles.lost);
        cluster.put_disk_aside(roles.lost);
        cluster.restart(roles.lost);
        return roles;
    }
    // By the newest config in its ring, committed or not.
    static std::size_t voters_in_ring(const Cluster& cluster, ReplicaId id) {
        return cluster.core(id).newest_config().config.voters.size();
    }
    static std::vector<ReplicaId> members(const Cluster& cluster) {
        std::vector<ReplicaId> ids;
        for (std::size_t id = 1; id <= cluster.replicas(); ++id) ids.push_back({static_cast<std::uint8_t>(id)});
        return ids;
    }
    // Whether all members are alive and vote, by the word of each of them.
    static bool all_vote(Cluster& cluster, std::uint64_t within_ns = 10'000 * kMs) {
        return cluster.run_until(within_ns, [&] {
            return cluster.leader() && std::ranges::all_of(members(cluster), [&](ReplicaId id) {
                if (!cluster.alive(id)) return false;
                const core::Config& config = cluster.core(id).config();
                return config.voters.size() == cluster.replicas() && !config.joint() &&
                       std::ranges::all_of(members(cluster), [&](ReplicaId voter) {
                           return cluster.alive(voter) && config.names({voter, cluster.incarnation(voter)});
                       });
            });
        });
    }
    // It gets on, all members vote, and all have the same.
    static void is_whole_again(Cluster& cluster) {
        ASSERT_TRUE(progresses(cluster)) << cluster.describe();
        ASSERT_TRUE(all_vote(cluster)) << cluster.describe();
        ASSERT_TRUE(all_equal(cluster)) << cluster.describe();
        cluster.history().check_complete();
    }
    // What a replica knew is gone, and it starts anew.
    static void replace(Cluster& cluster, ReplicaId id, Durability durability) {
        cluster.crash(id, true);
        if (durability == Durability::durable) cluster.lose_disk(id);
        cluster.restart(id);
    }
};

}  // namespace lockstep::sim
