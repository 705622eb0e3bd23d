#include "tools/bench/compare.h"

#include "tools/bench/clock.h"
#include "tools/bench/cluster.h"
#include "tools/bench/disk_limit.h"
#include "tools/bench/limit.h"
#include "tools/bench/load.h"
#include "tools/bench/progress.h"
#include "tools/bench/rdma_limit.h"
#include "tools/bench/results.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

namespace lockstep::bench {
namespace {

constexpr int kAttempts = 5;
constexpr std::size_t kMostOpenBytes = std::size_t{16} << 20;  // Options::max_queued_bytes, by default
constexpr std::uint64_t kSlack = 10 * kSecond;  // how much longer than planned one measurement may take

std::uint64_t in_ns(double seconds) { return static_cast<std::uint64_t>(seconds * static_cast<double>(kSecond)); }

class Comparison {
 public:
    explicit Comparison(const Plan& plan)
        : plan_(plan),
          measure_ns_(in_ns(plan.seconds)),
          warm_up_ns_(measure_ns_ / 3),
          end_ns_(plan.limit_seconds > 0 ? now_ns() + in_ns(plan.limit_seconds) : ~std::uint64_t{0}) {}

    // Round by round; each goes through all payloads, commit and limit in turn, so that what the machine does besides
    // hits both. Stops early, after at least one round, where the plan's time would not suffice for another.
    Result<void> run() {
        for (unsigned round = 1; round <= plan_.rounds; ++round) {
            const std::uint64_t from = now_ns();
            round_text_ = "round " + std::to_string(round) + " of " + std::to_string(plan_.rounds);
            for (const Polling polling : plan_.pollings)
                for (const std::size_t bytes : plan_.bytes)
                    for (const std::string& transport : plan_.transports)
                        if (auto done = both(transport, bytes, polling); !done) return done;
            if (round < plan_.rounds && now_ns() + (now_ns() - from) * 5 / 4 > end_ns_) {
                tell("ends after " + round_text_ + ": the time would not suffice for another");
                break;
            }
        }
        return {};
    }
    Results take() && { return std::move(results_); }

 private:
    Result<void> both(const std::string& transport, std::size_t bytes, Polling polling) {
        if (plan_.commit)
            for (const Durability durability : plan_.durabilities) {
                const ClusterKind kind{polling, transport, durability, plan_.hosts, plan_.folder};
                if (auto done = commits(kind, bytes); !done) return done;
            }
        if (!plan_.limit) return {};
        if (auto done = limits(transport, bytes, polling); !done) return done;
        return disk_limit(transport, bytes, polling);
    }
    // Those with another durability are compared with the same limit.
    template <class Each>
    void each_cell(const std::string& transport, std::size_t bytes, std::size_t depth, Polling polling, Each&& each) {
        for (const Durability durability : plan_.durabilities)
            each(results_.cell({transport, durability, bytes, depth, polling}));
    }
    std::uint64_t deadline() const { return std::min(end_ns_, now_ns() + warm_up_ns_ + measure_ns_ + kSlack); }
    void say(const char* what, const std::string& transport, std::size_t bytes, std::size_t depth,
             Polling polling) const {
        progress_.say(round_text_ + ": " + what + ", " + transport + ", " + size_text(bytes) +
                      (depth > 0 ? ", depth " + std::to_string(depth) : "") + ", " + to_string(polling));
    }

    // All depths on one cluster. A cluster that loses its leader is replaced by another: the machine may be busy.
    Result<void> commits(const ClusterKind& kind, std::size_t bytes) {
        std::size_t next = 0;
        for (int attempt = 1;; ++attempt) {
            auto done = commits_from(next, kind, bytes);
            if (done || attempt == kAttempts || interrupted() || now_ns() >= end_ns_) return done;
            tell("starts again with three new replicas: " + done.error().message());
        }
    }
    Result<void> commits_from(std::size_t& next, const ClusterKind& kind, std::size_t bytes) {
        const std::string what = kind.transport + ", " + lockstep::to_string(kind.durability);
        say("starts three replicas", what, bytes, 0, kind.polling);
        auto cluster = Cluster::start(kind, nothing_, end_ns_);
        if (!cluster) return std::move(cluster).error();
        Replica& leader = cluster.value().leader();
        for (; next < plan_.depths.size(); ++next) {
            const std::size_t depth = plan_.depths[next];
            say("commit", what, bytes, depth, kind.polling);
            LoadPlan load_plan;
            load_plan.bytes = bytes;
            load_plan.depth = depth;
            load_plan.warm_up_ns = warm_up_ns_;
            load_plan.measure_ns = measure_ns_;
            const Status before = leader.status();
            Load load(leader, load_plan);
            auto result = load.run(deadline());
            if (!result) return std::move(result).error();
            const Status after = leader.status();
            for (const PeerStatus& peer : after.peers)
                if (!peer.path.starts_with(kind.transport))
                    return Error("replica " + std::to_string(peer.id.value) + ": path is " + peer.path);
            Cell& cell = results_.cell({kind.transport, kind.durability, bytes, depth, kind.polling});
            add(cell, result.value());
            if (after.log_batches > before.log_batches)
                cell.entries_per_sync.add(static_cast<double>(after.entries_committed - before.entries_committed) /
                                          static_cast<double>(after.log_batches - before.log_batches));
        }
        return {};
    }
    static void add(Cell& cell, const LoadResult& result) {
        cell.p50_us.add(result.latency.at_us(0.5));
        cell.p99_us.add(result.latency.at_us(0.99));
        cell.p999_us.add(result.latency.at_us(0.999));
        cell.entries_per_s.add(result.entries_per_s);
        cell.latency.add(result.latency);
    }

    // Round trips for depth 1, bytes a second for the others: these are the limits of latency and of throughput.
    Result<void> limits(const std::string& transport, std::size_t bytes, Polling polling) {
        const LimitPlan limit_plan{bytes, polling, warm_up_ns_, measure_ns_};
        const bool rdma = transport == "rdma";
        std::optional<double> stream;
        for (const std::size_t depth : plan_.depths) {
            if (depth == 1) {
                say("limit, round trips", transport, bytes, depth, polling);
                auto latency = rdma ? measure_rdma_round_trips(limit_plan, plan_.hosts, deadline())
                                    : measure_round_trips(limit_plan, deadline());
                if (!latency) return std::move(latency).error();
                each_cell(transport, bytes, depth, polling, [&](Cell& cell) {
                    cell.limit_p50_us.add(latency.value().at_us(0.5));
                    cell.limit_p99_us.add(latency.value().at_us(0.99));
                    cell.limit_latency.add(latency.value());
                });
                continue;
            }
            if (!stream) {
                say("limit, stream", transport, bytes, 0, polling);
                auto measured = rdma ? measure_rdma_stream(limit_plan, plan_.hosts, deadline())
                                     : measure_stream(limit_plan, deadline());
                if (!measured) return std::move(measured).error();
                stream = measured.value();
            }
            each_cell(transport, bytes, depth, polling, [&](Cell& cell) { cell.limit_bytes_per_s.add(*stream); });
        }
        return {};
    }

    // What durable commits of depth 1 wait for besides: one fdatasync of the same bytes, on the same disk.
    Result<void> disk_limit(const std::string& transport, std::size_t bytes, Polling polling) {
        if (std::ranges::count(plan_.depths, 1u) == 0 ||
            std::ranges::count(plan_.durabilities, Durability::durable) == 0)
            return {};
        say("limit, fdatasync", transport, bytes, 0, polling);
        if (!disk_) {
            std::error_code ignored;
            const std::string temporary = std::filesystem::temp_directory_path(ignored).string();
            auto disk = DiskLimit::make(plan_.folder.empty() ? temporary : plan_.folder);
            if (!disk) return std::move(disk).error();
            disk_.emplace(std::move(disk).value());
        }
        auto latency = disk_->measure({bytes, polling, warm_up_ns_, measure_ns_});
        if (!latency) return std::move(latency).error();
        Cell& cell = results_.cell({transport, Durability::durable, bytes, 1, polling});
        cell.sync_p50_us.add(latency.value().at_us(0.5));
        cell.sync_p99_us.add(latency.value().at_us(0.99));
        cell.sync_latency.add(latency.value());
        return {};
    }

    const Plan& plan_;
    const std::uint64_t measure_ns_;
    const std::uint64_t warm_up_ns_;
    const std::uint64_t end_ns_;
    Progress progress_;
    std::string round_text_;
    Results results_;
    Nothing nothing_;
    std::optional<DiskLimit> disk_;
};

void warn_of_load() {
    double load = 0;
    if (getloadavg(&load, 1) != 1) return;
    const unsigned processors = std::thread::hardware_concurrency();
    if (load < processors * 0.5) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the load of the last minute was %.1f on %u processors: other work spoils the numbers",
                  load, processors);
    tell(text);
}

}  // namespace

int run_compare(const Plan& plan) {
    if (plan.commit && std::ranges::max(plan.bytes) * std::ranges::max(plan.depths) > kMostOpenBytes) {
        tell("the largest --bytes times the largest --depth is more than " + size_text(kMostOpenBytes) +
             ", what a replica's queue holds: choose less of one");
        return 2;
    }
    for (const std::string& path : {plan.json, plan.plot}) {
        if (path.empty()) continue;
        // Now rather than after minutes of measuring.
        if (auto writable = check_writable(path); !writable) {
            tell(writable.error().message());
            return 1;
        }
    }
    warn_of_load();
    Results results;
    {
        Comparison comparison(plan);
        if (auto done = comparison.run(); !done) {
            tell(done.error().message());
            return 1;
        }
        results = std::move(comparison).take();
    }
    results.print_rounds(std::cout);
    std::cout << '\n';
    results.print_table(std::cout);
    results.print_transports(std::cout);
    results.print_durabilities(std::cout);
    if (!plan.json.empty())
        if (auto written = results.write_json(plan.json); !written) {
            tell(written.error().message());
            return 1;
        }
    if (!plan.plot.empty())
        if (auto written = results.write_plot(plan.plot); !written) {
            tell(written.error().message());
            return 1;
        }
    return 0;
}

}  // namespace lockstep::bench
