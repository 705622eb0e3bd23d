#include "sim/run.h"

#include "consensus/replica/codec.h"
#include "sim/recovery.h"
#include "sim/workload.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kFirstLeaderNs = 3000 * kMs;

class Run {
 public:
    Run(const Case& of, const MakeClients& make_clients, const std::function<void(const std::string&)>& trace)
        : case_(of), cluster_(of.options), clients_(make_clients(cluster_)) {
        if (trace)
            cluster_.trace = [this, trace](const std::string& text) {
                trace(std::to_string(cluster_.network().now_ns() / 1000) + " us  " + text);
            };
    }

    void all(RunResult& result) {
        // While the cluster forms, nothing is in its way but what the fabric is.
        cluster_.network().faults().tells_landed = case_.faults.tells_landed;
        cluster_.start_all();
        if (!cluster_.run_until(kFirstLeaderNs, [&] { return cluster_.leader().has_value(); }))
            throw NoProgress("no first leader\n" + cluster_.describe());
        cluster_.network().faults() = case_.faults;
        for (const Action& action : case_.actions) {
            if (cluster_.trace) cluster_.trace("-- " + to_string(action));
            act(action, result);
            ++result.actions;
        }
        recover({}, result);
        finish(result);
    }

    void summarize(RunResult& result) {
        const History& history = cluster_.history();
        result.hash = history.hash();
        result.acknowledged = history.acknowledged();
        result.unknown = history.unknown();
        result.reads = history.reads();
        result.virtual_ns = cluster_.network().now_ns();
        for (const ReplicaId id : cluster_.ids()) {
            result.elections += cluster_.core(id).elections_started();
            result.committed = std::max(result.committed, cluster_.core(id).commit().index.value);
        }
    }

 private:
    // Who is meant.
    std::optional<ReplicaId> named(const Target& target) const {
        if (target.kind == Target::Kind::replica) return target.id;
        if (target.kind == Target::Kind::leader) return cluster_.leader();
        if (target.kind == Target::Kind::marked) return marked_;
        return std::nullopt;
    }
    // The same, if that one lives.
    std::optional<ReplicaId> resolve(const Target& target) const {
        const auto id = named(target);
        return id && cluster_.alive(*id) ? id : std::nullopt;
    }

    void act(const Action& action, RunResult& result) {
        if (action.act == Act::run) return cluster_.run_for(action.amount);
        if (action.act == Act::await) return await(action.amount);
        if (action.act == Act::heal_all) return cluster_.network().heal_all();
        if (action.act == Act::recover) return recover(resolve(action.target), result);
        if (action.act == Act::mark) {
            if (const auto leads = cluster_.leader()) marked_ = *leads;
            return;
        }
        if (action.act == Act::power_all) {
            if (cluster_.durable()) cluster_.black_out();
            return;
        }
        if (action.act == Act::restart || action.act == Act::rot) {
            const auto whom = named(action.target);
            if (!whom || cluster_.alive(*whom) || cluster_.lingers(*whom)) return;
            if (action.act == Act::restart) cluster_.restart(*whom);
            else cluster_.rot(*whom, action.amount);
            return;
        }
        const auto id = resolve(action.target);
        if (!id) return;
        const auto other = resolve(action.other);
        if (other && *other != *id) return between(action.act, *id, *other);
        one(action, *id);
    }

    void await(std::uint64_t ns) {
        const Ballot before = highest_;
        cluster_.run_until(ns, [&] {
            if (const auto leads = cluster_.leader())
                highest_ = std::max(highest_, cluster_.core(*leads).promised());
            return highest_ > before;
        });
    }

    void between(Act act, ReplicaId id, ReplicaId other) {
        if (act == Act::cut) cluster_.network().cut(id, other);
        if (act == Act::heal) cluster_.network().heal(id, other);
        if (act == Act::fail) cluster_.fabric(id).break_lane(other, "broken (a fault of the simulation)");
    }

    void one(const Action& action, ReplicaId id) {
        switch (action.act) {
            case Act::add:
                return clients_->add(id, action.key, action.amount);
            case Act::put:
                return clients_->put(id, action.key, action.amount);
            case Act::get:
                return clients_->get(id, action.key);
            case Act::pause:
                return cluster_.pause(id);
            case Act::resume:
                if (cluster_.paused(id)) cluster_.resume(id);
                return;
            case Act::hand_over:
                return hand_over(id);
            case Act::hang:
                return cluster_.hang(id, action.amount);
            case Act::jump:
                return cluster_.jump_clock(
                    id, static_cast<std::int64_t>(action.amount * kMs) * (action.key == 0 ? 1 : -1));
            case Act::crash:
            case Act::linger:
                if (!cluster_.durable() && !may_crash(cluster_, id)) return;  // what is on disk is not lost
                if (action.act == Act::crash) cluster_.crash(id);
                else cluster_.crash_lingering(id, action.amount, action.amount % 2 == 0);
                return;
            default:
                if (cluster_.durable()) to_disk(action, id);
        }
    }

    void to_disk(const Action& action, ReplicaId id) {
        using Kind = log::DiskOperation::Kind;
        switch (action.act) {
            case Act::power:
                return cluster_.crash(id, true);
            case Act::disk_hang:
                return cluster_.hang_disks(id, action.amount);
            case Act::disk_fail: {
                log::SimDisk& disk = action.amount < 2 ? cluster_.disk(id) : cluster_.snapshot_disk(id);
                return disk.fail_next(action.amount % 2 == 0 ? Kind::write : Kind::sync);
            }
            case Act::snapshot:
                return cluster_.driver(id).take_snapshot([](const Result<Index>&) {});
            default:
                return;
        }
    }

    void hand_over(ReplicaId to) {
        const auto leads = cluster_.leader();
        if (!leads || *leads == to) return;
        std::vector<std::byte> message;
        replica::encode(core::Campaign{cluster_.core(*leads).promised()}, message);
        cluster_.fabric(*leads).send(to, message);
    }

    void recover(std::optional<ReplicaId> paused, RunResult& result) {
        const transport::sim::Faults faults = cluster_.network().faults();
        const Recovered recovered = sim::recover(cluster_, *clients_, paused);
        result.to_leader_ns = std::max(result.to_leader_ns, recovered.to_leader_ns);
        result.to_commit_ns = std::max(result.to_commit_ns, recovered.to_commit_ns);
        cluster_.network().faults() = faults;
    }

    void finish(RunResult& result) {
        cluster_.history().check_complete();
        clients_->check();
        result.undecided = clients_->undecided();
    }

    const Case& case_;
    Cluster cluster_;
    std::unique_ptr<Clients> clients_;
    std::optional<ReplicaId> marked_;
    Ballot highest_;  // in which anybody was seen to lead
};

}  // namespace

const char* to_string(Failure failure) {
    switch (failure) {
        case Failure::none:
            return "none";
        case Failure::safety:
            return "safety";
        case Failure::no_progress:
            return "no progress";
        case Failure::crash:
            return "crash";
    }
    return "none";
}

RunResult run(const Case& of, const MakeClients& make_clients, const std::function<void(const std::string&)>& trace) {
    RunResult result;
    Run one(of, make_clients, trace);
    try {
        one.all(result);
    } catch (const NoProgress& found) {
        result.failure = Failure::no_progress;
        result.what = found.what();
    } catch (const Violation& found) {
        result.failure = Failure::safety;
        result.what = found.what();
    }
    one.summarize(result);
    return result;
}

RunResult run(const Case& of, const std::function<void(const std::string&)>& trace) {
    Case with_services = of;
    with_services.options.make_service = [](ReplicaId) { return std::make_unique<KeyValue>(); };
    return run(with_services, [](Cluster& cluster) { return std::make_unique<Workload>(cluster); }, trace);
}

}  // namespace lockstep::sim
