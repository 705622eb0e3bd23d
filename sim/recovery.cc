#include "sim/recovery.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::sim {

namespace {

// Bounds, in virtual time: of an election time-out of 100 ms, and heartbeats of 10 ms.
constexpr std::uint64_t kQuietNs = 300 * kMs;       // until broken connections are there again
constexpr std::uint64_t kLeaderNs = 3000 * kMs;
constexpr std::uint64_t kCommitNs = 2000 * kMs;
constexpr std::uint64_t kFollowNs = 2000 * kMs;
constexpr std::uint64_t kLingerNs = 2000 * kMs;     // more than any dead process' memory answers
constexpr std::uint64_t kEndNs = 3000 * kMs;
constexpr std::uint64_t kSilentNs = 100 * kMs;      // one write, then silence: everybody knows of it by then
constexpr std::uint64_t kPromptNs = 5 * kMs;        // a write in a quiet cluster
constexpr std::uint64_t kKey = 1000;                // a key of recovery's own
constexpr std::size_t kBytes = 24;

class Recovery {
 public:
    Recovery(Cluster& cluster, Clients& clients, std::optional<ReplicaId> paused)
        : cluster_(cluster), clients_(clients), paused_(paused) {}

    Recovered all() {
        calm();
        // Whoever hangs does first what came to it meanwhile, such as a request to campaign.
        cluster_.run_for(cluster_.busy_ns() + kQuietNs);
        const std::uint64_t began_ns = now();
        const bool led = cluster_.run_until(kLeaderNs, [&] { return leads(); });
        recovered_.to_leader_ns = now() - began_ns;
        require(led, "no leader after healing");
        require(commits_again(began_ns + recovered_.to_leader_ns), "no commit after healing");
        follow();
        require(cluster_.run_until(kEndNs, [&] { return paused_ || cluster_.history().open() == 0; }),
                "a proposal or a read never ended (S17)");
        prompt();
        return recovered_;
    }

 private:
    std::uint64_t now() { return cluster_.network().now_ns(); }

    void calm() {
        auto& faults = cluster_.network().faults();
        const transport::sim::Faults before = faults;
        faults = {};
        faults.tells_landed = before.tells_landed;
        faults.fence_leaks_chance = before.fence_leaks_chance;
        cluster_.network().heal_all();
        if (cluster_.durable()) revive();
        // A minority may stay as it is.
        if (paused_ && !may_crash(cluster_, *paused_)) paused_.reset();
        for (const ReplicaId id : cluster_.ids()) {
            if (paused_ == id) cluster_.pause(id);
            else if (cluster_.paused(id)) cluster_.resume(id);
        }
    }

    // Whose log is on disk comes back with it.
    void revive() {
        cluster_.calm_disks();
        for (std::uint8_t number = 1; number <= cluster_.replicas(); ++number) {
            const ReplicaId id{number};
            if (cluster_.alive(id)) continue;
            cluster_.run_until(kLingerNs, [&] { return !cluster_.lingers(id); });
            cluster_.restart(id);
        }
    }

    bool leads() const {
        const auto leader = cluster_.leader();
        return leader && paused_ != *leader;
    }

    // The history's acknowledgements rise: somebody asks, and asks again.
    bool commits_again(std::uint64_t from_ns) {
        const std::size_t before = cluster_.history().acknowledged();
        std::uint64_t next_try_ns = 0;
        const bool commits = cluster_.run_until(kCommitNs, [&] {
            if (leads() && now() >= next_try_ns) {
                next_try_ns = now() + 100 * kMs;
                clients_.add(*cluster_.leader(), kKey, kBytes);
            }
            return cluster_.history().acknowledged() > before;
        });
        recovered_.to_commit_ns = now() - from_ns;
        return commits;
    }

    // Whether a voter is away: then a newcomer may have to wait, as with it the cluster could spare none of the others.
    bool voter_is_away() const {
        const auto leader = cluster_.leader();
        return leader && std::ranges::any_of(cluster_.core(*leader).config().voters.all(), [&](core::Voter voter) {
            return paused_ == voter.id || !cluster_.alive(voter.id) ||
                   cluster_.incarnation(voter.id) != voter.incarnation;
        });
    }

    // What a majority can do, every replica follows, however far behind it was; one that lost its memory is a voter
    // again (S12).
    void follow() {
        const Index target = cluster_.core(*cluster_.leader()).commit().index;
        const auto follows = [&](ReplicaId id) {
            if (paused_ == id) return true;
            const core::Core& core = cluster_.core(id);
            return core.applied().index >= target && (core.votes() || voter_is_away());
        };
        const std::vector<ReplicaId> all = cluster_.ids();
        require(cluster_.run_until(kFollowNs, [&] { return std::ranges::all_of(all, follows); }),
                "a replica does not follow after healing, or does not become a voter again");
    }

    // A quiet cluster answers without waiting for a timer, and its followers learn of it without being told twice.
    void prompt() {
        const auto leader = cluster_.leader();
        require(leader.has_value(), "a quiet cluster loses its leader");
        std::vector<ReplicaId> followers;
        for (const ReplicaId id : cluster_.ids())
            if (paused_ != id && cluster_.core(id).applied().index == cluster_.core(*leader).applied().index)
                followers.push_back(id);
        const std::size_t before = cluster_.history().acknowledged();
        clients_.add(*leader, kKey, kBytes);
        require(cluster_.run_until(kPromptNs, [&] { return cluster_.history().acknowledged() > before; }),
                "a write in a quiet cluster waits");
        const Index target = cluster_.core(*leader).commit().index;
        require(cluster_.run_until(kSilentNs, [&] {
            return std::ranges::all_of(followers,
                                       [&](ReplicaId id) { return cluster_.core(id).applied().index >= target; });
        }), "one write, then silence: a follower does not learn of its commit");
    }

    void require(bool holds, const char* what) {
        if (!holds) throw NoProgress(what + std::string("\n") + cluster_.describe());
    }

    Cluster& cluster_;
    Clients& clients_;
    std::optional<ReplicaId> paused_;
    Recovered recovered_;
};

}  // namespace

bool may_crash(const Cluster& cluster, ReplicaId id) {
    const auto has_majority = [&](const core::Config& config) {
        return core::has_majority(config, [&](core::Voter voter) {
            return voter.id != id && cluster.alive(voter.id) && cluster.incarnation(voter.id) == voter.incarnation &&
                   cluster.core(voter.id).loss() == core::Loss::none;
        });
    };
    core::ConfigAt committed = cluster.core(id).committed_config();
    for (const ReplicaId one : cluster.ids()) {
        const core::ConfigAt& known = cluster.core(one).committed_config();
        if (known.at > committed.at) committed = known;
    }
    const auto ids = cluster.ids();
    return has_majority(committed.config) && std::ranges::all_of(ids, [&](ReplicaId one) {
        const core::ConfigAt newest = cluster.core(one).newest_config();
        return newest.at <= committed.at || has_majority(newest.config);
    });
}

Recovered recover(Cluster& cluster, Clients& clients, std::optional<ReplicaId> paused) {
    return Recovery(cluster, clients, paused).all();
}

}  // namespace lockstep::sim
