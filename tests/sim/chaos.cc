#include "tests/sim/chaos.h"

#include <algorithm>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kMs = 1'000'000;

class Chaos {
 public:
    explicit Chaos(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 1), cluster_(draw_options(seed)) {}

    void run() {
        cluster_.start_all();
        require(cluster_.run_until(3000 * kMs, [&] { return cluster_.leader().has_value(); }), "no first leader");
        draw_faults();
        for (int step = 0; step < 400; ++step) {
            disturb();
            load();
            cluster_.run_for(1 + random_.below(10 * kMs));
        }
        heal();
    }

    Cluster& cluster() { return cluster_; }

 private:
    Cluster::Options draw_options(std::uint64_t seed) {
        Cluster::Options options;
        options.seed = seed;
        const std::size_t sizes[] = {1, 2, 3, 3, 3, 3, 4, 5, 5};
        options.replicas = sizes[random_.below(std::size(sizes))];
        options.ring_bytes = std::uint64_t{8 * 1024} << random_.below(4);
        replicas_ = options.replicas;
        return options;
    }

    bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
    ReplicaId any() {
        const auto ids = cluster_.ids();
        return ids[random_.below(ids.size())];
    }

    // Swarm testing (Groce et al., ISSTA 2012): each run has some kinds of faults only, so that one does not hide
    // another.
    void draw_faults() {
        auto& faults = cluster_.network().faults();
        const auto some = [&](std::uint64_t most) { return chance(50) ? random_.below(most) : 0; };
        faults.slow_chance = some(100'000);
        faults.slow_ns = 1 + random_.below(20 * kMs);
        faults.message_lost_chance = some(200'000);
        faults.message_repeated_chance = some(200'000);
        faults.lane_breaks_chance = some(50'000);
        faults.completion_lost_chance = some(20'000);
        faults.read_fails_chance = some(200'000);
        faults.read_torn_chance = some(300'000);
        faults.piece_bytes = chance(50) ? 64 + random_.below(8) * 64 : 0;
        crashes_ = chance(30) ? 1 + random_.below((replicas_ - 1) / 2 + 1) : 0;
        crashes_ = std::min(crashes_, (replicas_ - 1) / 2);
        pause_percent_ = chance(50) ? random_.below(10) : 0;
        cut_percent_ = chance(50) ? random_.below(10) : 0;
        break_percent_ = chance(50) ? random_.below(10) : 0;
        attack_percent_ = chance(60) ? random_.below(12) : 0;
        burst_ = 1 + random_.below(20);
        largest_ = chance(50) ? 64 : cluster_.core(any()).ring().bytes() / 4 - 64;
    }

    // Take-overs with writes in flight are where the rules are needed: whoever leads is paused, cut off or disturbed
    // more often than others, and clients go on asking it.
    void attack_leader() {
        const auto leads = cluster_.leader();
        if (!leads || !chance(attack_percent_)) return;
        old_leader_ = *leads;
        for (std::uint64_t i = random_.below(burst_ + 1); i > 0; --i) cluster_.propose(*leads, random_.below(largest_));
        cluster_.run_for(random_.below(60'000));
        switch (random_.below(3)) {
            case 0:
                if (!cluster_.paused(*leads)) cluster_.pause(*leads);
                break;
            case 1:
                for (const ReplicaId id : cluster_.ids())
                    if (id != *leads && chance(70)) cluster_.network().cut(*leads, id);
                break;
            case 2:
                for (const ReplicaId id : cluster_.ids())
                    if (id != *leads && chance(70)) cluster_.network().cut(id, *leads);
                break;
        }
        // Long enough for another to lead, then short enough for this one not to know it yet.
        cluster_.run_for((chance(50) ? 200 : 20) * kMs + random_.below(20 * kMs));
        ask_old_leader();
        if (cluster_.alive(old_leader_) && cluster_.paused(old_leader_)) cluster_.resume(old_leader_);
        ask_old_leader();
        if (chance(60)) cluster_.network().heal_all();
    }

    void ask_old_leader() {
        if (!cluster_.alive(old_leader_)) return;
        for (int i = 0; i < 3; ++i) {
            cluster_.read(old_leader_);
            cluster_.propose(old_leader_, random_.below(largest_));
            if (const auto leads = cluster_.leader()) cluster_.propose(*leads);
            cluster_.run_for(random_.below(100'000));
        }
    }

    void disturb() {
        attack_leader();
        if (crashes_ > 0 && chance(1)) crash();
        const ReplicaId one = any();
        if (cluster_.paused(one) ? chance(30) : chance(pause_percent_))
            cluster_.paused(one) ? cluster_.resume(one) : cluster_.pause(one);
        const ReplicaId a = any();
        const ReplicaId b = any();
        if (a != b) {
            if (cluster_.network().is_cut(a, b) ? chance(30) : chance(cut_percent_))
                cluster_.network().is_cut(a, b) ? cluster_.network().heal(a, b) : cluster_.network().cut(a, b);
            if (chance(break_percent_)) cluster_.fabric(a).break_lane(b, "broken (a fault of the simulation)");
        }
    }

    // Memory mode has no way back for a crashed replica, nor yet for one that fell off the ring: together they stay a
    // minority, else there is rightly no progress.
    void crash() {
        const ReplicaId victim = any();
        Position low;
        for (const ReplicaId id : cluster_.ids()) low = std::max(low, cluster_.core(id).low_mark());
        std::size_t behind = 0;
        for (const ReplicaId id : cluster_.ids())
            behind += id != victim && cluster_.core(id).commit().position < low ? 1 : 0;
        const std::size_t gone = replicas_ - cluster_.ids().size();
        if (gone + behind + 1 > (replicas_ - 1) / 2) return;
        --crashes_;
        cluster_.crash(victim);
    }

    void load() {
        for (std::uint64_t i = random_.below(burst_ + 1); i > 0; --i) {
            const ReplicaId to = chance(80) ? cluster_.leader().value_or(any()) : any();
            if (chance(20)) cluster_.read(to);
            else cluster_.propose(to, random_.below(largest_));
        }
    }

    // A bound on the time to a leader and to a commit that everyone knows.
    void heal() {
        const std::uint64_t leaks = cluster_.network().faults().fence_leaks_chance;
        cluster_.network().faults() = {};
        cluster_.network().faults().fence_leaks_chance = leaks;
        cluster_.network().heal_all();
        for (const ReplicaId id : cluster_.ids())
            if (cluster_.paused(id)) cluster_.resume(id);
        cluster_.run_for(500 * kMs);
        const std::size_t before = cluster_.history().acknowledged();
        const bool progress = cluster_.run_until(5000 * kMs, [&] {
            const auto leads = cluster_.leader();
            if (leads && cluster_.network().now_ns() > next_try_ns_) {
                next_try_ns_ = cluster_.network().now_ns() + 100 * kMs;
                cluster_.propose(*leads);
            }
            return cluster_.history().acknowledged() > before;
        });
        if (!progress && !recoverable()) return cluster_.history().check_complete();
        require(progress, "no progress after healing");
        // What a majority can do, every replica whose memory reaches back far enough follows.
        const Index target = cluster_.core(*cluster_.leader()).commit().index;
        cluster_.run_until(2000 * kMs, [&] {
            return std::ranges::all_of(cluster_.ids(),
                                       [&](ReplicaId id) { return cluster_.core(id).applied().index >= target; });
        });
        std::size_t reached = 0;
        for (const ReplicaId id : cluster_.ids()) reached += cluster_.core(id).applied().index >= target ? 1 : 0;
        require(reached >= replicas_ / 2 + 1, "no majority follows after healing");
        require(cluster_.run_until(3000 * kMs, [&] { return cluster_.history().open() == 0; }),
                "a proposal or a read never ended (S17)");
        cluster_.history().check_complete();
    }

    // Whether some replica could adopt the longest log, and its ring reaches back to the commits of a majority. Where
    // none does, memory mode is stuck until there are snapshots, however correct it is.
    bool recoverable() const {
        const auto ids = cluster_.ids();
        const auto furthest = std::ranges::max_element(
            ids, {}, [&](ReplicaId id) { return cluster_.core(id).commit().position; });
        return std::ranges::any_of(ids, [&](ReplicaId candidate) {
            if (cluster_.core(candidate).commit().position < cluster_.core(*furthest).low_mark()) return false;
            const auto reaches = [&](ReplicaId id) {
                return cluster_.core(id).commit().position >= cluster_.core(candidate).low_mark();
            };
            return static_cast<std::size_t>(std::ranges::count_if(ids, reaches)) >= core::majority(replicas_);
        });
    }

    void require(bool holds, const char* what) {
        if (!holds) throw Violation(what + std::string("\n") + cluster_.describe());
    }

    core::Random random_;
    std::size_t replicas_ = 0;
    Cluster cluster_;
    std::size_t crashes_ = 0;
    std::uint64_t pause_percent_ = 0;
    std::uint64_t cut_percent_ = 0;
    std::uint64_t break_percent_ = 0;
    std::uint64_t attack_percent_ = 0;
    ReplicaId old_leader_;
    std::uint64_t burst_ = 1;
    std::uint64_t largest_ = 64;
    std::uint64_t next_try_ns_ = 0;
};

}  // namespace

ChaosResult run_chaos(std::uint64_t seed) {
    ChaosResult result;
    Chaos chaos(seed);
    try {
        chaos.run();
    } catch (const Violation& violation) {
        result.violation = violation.what();
    }
    const History& history = chaos.cluster().history();
    result.hash = history.hash();
    result.acknowledged = history.acknowledged();
    result.unknown = history.unknown();
    result.reads = history.reads();
    for (const ReplicaId id : chaos.cluster().ids()) {
        result.elections += chaos.cluster().core(id).elections_started();
        result.committed = std::max(result.committed, chaos.cluster().core(id).commit().index);
    }
    return result;
}

}  // namespace lockstep::sim
