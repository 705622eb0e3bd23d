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
        const bool commits = led && commits_again(began_ns + recovered_.to_leader_ns);
        if (!commits && !recoverable()) {
            require(gone() > 0, "what is committed is in nobody's reach: no replica can adopt it and repair");
            recovered_.excused = true;
            return recovered_;
        }
        require(led, "no leader after healing");
        require(commits, "no commit after healing");
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
        // A minority may stay as it is.
        if (paused_ && (gone() + 1 > (cluster_.replicas() - 1) / 2 || !may_crash(cluster_, *paused_))) paused_.reset();
        for (const ReplicaId id : cluster_.ids()) {
            if (paused_ == id) cluster_.pause(id);
            else if (cluster_.paused(id)) cluster_.resume(id);
        }
    }

    std::size_t gone() const {
        std::size_t voters = 0;
        for (const ReplicaId id : cluster_.ids()) voters += cluster_.core(id).forming() ? 0 : 1;
        return cluster_.replicas() - voters;
    }
    bool votes(ReplicaId id) const { return !cluster_.core(id).forming() && paused_ != id; }
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

    // What a majority can do, every replica whose memory reaches back far enough follows.
    void follow() {
        const Index target = cluster_.core(*cluster_.leader()).commit().index;
        const auto follows = [&](ReplicaId id) { return cluster_.core(id).applied().index >= target; };
        const core::Core& leader = cluster_.core(*cluster_.leader());
        std::vector<ReplicaId> can;
        for (const ReplicaId id : cluster_.ids())
            if (votes(id) && cluster_.core(id).commit().position >= leader.low_mark()) can.push_back(id);
        require(cluster_.run_until(kFollowNs, [&] { return std::ranges::all_of(can, follows); }),
                "a replica does not follow after healing, though the leader's ring reaches back to its commit");
        require(static_cast<std::size_t>(std::ranges::count_if(cluster_.ids(), follows)) >=
                    core::majority(cluster_.replicas()),
                "no majority follows after healing");
    }

    // A quiet cluster answers without waiting for a timer, and its followers learn of it without being told twice.
    void prompt() {
        const auto leader = cluster_.leader();
        require(leader.has_value(), "a quiet cluster loses its leader");
        std::vector<ReplicaId> followers;
        for (const ReplicaId id : cluster_.ids())
            if (votes(id) && cluster_.core(id).applied().index == cluster_.core(*leader).applied().index)
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

    // Whether some replica could adopt the longest log, and its ring reaches back to the commits of a majority. Where
    // none does, memory mode is stuck until there are snapshots. That can be where a replica was lost that the others
    // had gone on with (its memory may have answered for long) while a third was behind, and only there.
    bool recoverable() const {
        std::vector<ReplicaId> ids = cluster_.ids();
        std::erase_if(ids, [&](ReplicaId id) { return !votes(id); });
        if (ids.size() < core::majority(cluster_.replicas())) return false;
        const auto furthest = std::ranges::max_element(
            ids, {}, [&](ReplicaId id) { return cluster_.core(id).commit().position; });
        return std::ranges::any_of(ids, [&](ReplicaId candidate) {
            if (cluster_.core(candidate).commit().position < cluster_.core(*furthest).low_mark()) return false;
            const auto reaches = [&](ReplicaId id) {
                return cluster_.core(id).commit().position >= cluster_.core(candidate).low_mark();
            };
            return static_cast<std::size_t>(std::ranges::count_if(ids, reaches)) >=
                   core::majority(cluster_.replicas());
        });
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
    if (cluster.core(id).forming()) return true;  // a life without memory has none to lose
    // How far low marks are, or may yet rise by what is under way: up to the end of the longest log, less what is kept.
    Position low;
    std::size_t voters = 0;
    std::size_t behind = 0;
    for (const ReplicaId one : cluster.ids()) {
        const core::Core& core = cluster.core(one);
        if (core.forming()) continue;
        const std::uint64_t kept = core.ring().geometry().kept_tail_bytes;
        low = std::max({low, core.low_mark(), Position{std::max(core.end().position.value, kept) - kept}});
    }
    for (const ReplicaId one : cluster.ids()) {
        if (cluster.core(one).forming()) continue;
        ++voters;
        behind += one != id && cluster.core(one).commit().position < low ? 1 : 0;
    }
    return cluster.replicas() - voters + behind + 1 <= (cluster.replicas() - 1) / 2;
}

Recovered recover(Cluster& cluster, Clients& clients, std::optional<ReplicaId> paused) {
    return Recovery(cluster, clients, paused).all();
}

}  // namespace lockstep::sim
