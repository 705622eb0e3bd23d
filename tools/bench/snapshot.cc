#include "tools/bench/snapshot.h"

#include "tools/bench/clock.h"
#include "tools/bench/cluster.h"
#include "tools/bench/load.h"
#include "tools/bench/progress.h"
#include "tools/bench/results.h"
#include "tools/counter/store.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::bench {

namespace {

constexpr std::size_t kValueBytes = 1024;
constexpr std::uint64_t kSlice = 50 * kMillisecond;  // of load, after which it is seen whether the snapshot is done
constexpr std::uint64_t kLongest = 600 * kSecond;

// The counter's data, so that a snapshot is what a service's is.
class Filled final : public StateMachine {
 public:
    explicit Filled(std::size_t mib) : keys_(mib * 1024 * 1024 / kValueBytes) {
        for (std::uint64_t number = 0; number < keys_; ++number) store_.set(key(number), value_);
    }
    void apply(std::span<const Entry> batch, Replies&) override {
        for (const Entry& entry : batch) {
            value_[entry.index.value % kValueBytes] ^= 1;
            store_.set(key(entry.index.value * 0x9e3779b97f4a7c15 % keys_), value_);
        }
    }
    std::unique_ptr<SnapshotView> snapshot() override { return store_.snapshot(); }

 private:
    static std::string key(std::uint64_t number) { return "key:" + std::to_string(number); }

    const std::uint64_t keys_;
    std::string value_ = std::string(kValueBytes, 'v');
    counter::Store store_;
};

// Of all rounds at one depth.
struct Compared {
    std::size_t depth = 0;
    Histogram before, during;
    Rounds before_p99_us, during_p99_us, ratio_p99, took_s, before_per_s, during_per_s;
};

class SnapshotRuns {
 public:
    explicit SnapshotRuns(const SnapshotPlan& plan) : plan_(plan) {}

    Result<std::vector<Compared>> run() {
        progress_.say("fills " + std::to_string(plan_.mib) + " MiB of state");
        Filled state(plan_.mib);
        const ClusterKind kind{.polling = plan_.polling,
                               .durability = plan_.durability,
                               .hosts = std::vector<std::string>(kReplicas, "127.0.0.1"),
                               .folder = plan_.folder,
                               .snapshot_bytes = 0};
        progress_.say("starts three replicas");
        auto cluster = Cluster::start(kind, state, now_ns() + kLongest);
        if (!cluster) return std::move(cluster).error();
        std::vector<Compared> all;
        for (const std::size_t depth : plan_.depths) {
            all.emplace_back();
            all.back().depth = depth;
            for (unsigned round = 1; round <= plan_.rounds; ++round) {
                round_text_ = "depth " + std::to_string(depth) + ", round " + std::to_string(round) + " of " +
                              std::to_string(plan_.rounds);
                if (auto done = one_round(cluster.value().leader(), all.back()); !done) return std::move(done).error();
            }
        }
        return all;
    }

 private:
    Result<void> one_round(Replica& leader, Compared& into) {
        progress_.say(round_text_ + ": commits");
        const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(plan_.seconds * static_cast<double>(kSecond));
        auto before = load_until(leader, into.depth, [end] { return now_ns() >= end; });
        if (!before) return std::move(before).error();

        progress_.say(round_text_ + ": commits during a snapshot");
        const auto taken = std::make_shared<Taken>();
        const std::uint64_t from = now_ns();
        leader.take_snapshot([taken](const Result<Index>& outcome) {
            if (!outcome) taken->failure = outcome.error();
            taken->at_ns.store(now_ns(), std::memory_order_release);
        });
        auto during = load_until(leader, into.depth, [&] { return taken->at_ns.load(std::memory_order_acquire) != 0; });
        if (!during) return std::move(during).error();
        if (taken->failure) return std::move(*taken->failure).within("no snapshot");

        into.took_s.add(static_cast<double>(taken->at_ns - from) / static_cast<double>(kSecond));
        into.before_p99_us.add(before.value().latency.at_us(0.99));
        into.during_p99_us.add(during.value().latency.at_us(0.99));
        into.ratio_p99.add(during.value().latency.at_us(0.99) / before.value().latency.at_us(0.99));
        into.before_per_s.add(before.value().entries_per_s);
        into.during_per_s.add(during.value().entries_per_s);
        into.before.add(before.value().latency);
        into.during.add(during.value().latency);
        return {};
    }

    // In slices, so that one ends soon after `done`.
    template <class Done>
    Result<LoadResult> load_until(Replica& leader, std::size_t depth, Done&& done) const {
        LoadResult all;
        const std::uint64_t from = now_ns();
        do {
            LoadPlan load_plan;
            load_plan.bytes = plan_.bytes;
            load_plan.depth = depth;
            load_plan.measure_ns = kSlice;
            Load load(leader, load_plan);
            auto slice = load.run(from + kLongest);
            if (!slice) return std::move(slice).error();
            all.latency.add(slice.value().latency);
        } while (!done());
        all.entries_per_s = static_cast<double>(all.latency.total()) * static_cast<double>(kSecond) /
                            static_cast<double>(now_ns() - from);
        return all;
    }

    struct Taken {
        std::optional<Error> failure;          // before `at_ns`
        std::atomic<std::uint64_t> at_ns = 0;  // when it was there; 0: not yet
    };

    const SnapshotPlan& plan_;
    Progress progress_;
    std::string round_text_;
};

void print(const SnapshotPlan& plan, const std::vector<Compared>& all) {
    std::printf("%zu MiB of state, %s, %s; medians of the rounds, latencies in us\n"
                "depth  snapshot s      before: p50      p99  entries/s      during: p50      p99  entries/s  p99 "
                "ratio\n",
                plan.mib, lockstep::to_string(plan.durability), to_string(plan.polling));
    for (const Compared& one : all)
        std::printf("%5zu%12.1f%17.1f%9.1f%11.0f%17.1f%9.1f%11.0f%11.2f\n", one.depth, *one.took_s.median(),
                    one.before.at_us(0.5), *one.before_p99_us.median(), *one.before_per_s.median(),
                    one.during.at_us(0.5), *one.during_p99_us.median(), *one.during_per_s.median(),
                    *one.ratio_p99.median());
}

std::string json_of(const SnapshotPlan& plan, const std::vector<Compared>& all) {
    std::string text = "[";
    for (const Compared& one : all) {
        char line[500];
        std::snprintf(line, sizeof line,
                      "%s\n {\"mib\": %zu, \"durability\": \"%s\", \"polling\": \"%s\", \"bytes\": %zu, "
                      "\"depth\": %zu, \"snapshot_s\": %.3f, \"before_p50_us\": %.1f, \"before_p99_us\": %.1f, "
                      "\"during_p50_us\": %.1f, \"during_p99_us\": %.1f, \"before_entries_per_s\": %.1f, "
                      "\"during_entries_per_s\": %.1f, \"ratio_p99\": %.3f}",
                      text.size() > 1 ? "," : "", plan.mib, lockstep::to_string(plan.durability),
                      to_string(plan.polling), plan.bytes, one.depth, *one.took_s.median(), one.before.at_us(0.5),
                      *one.before_p99_us.median(), one.during.at_us(0.5), *one.during_p99_us.median(),
                      *one.before_per_s.median(), *one.during_per_s.median(), *one.ratio_p99.median());
        text += line;
    }
    return text + "\n]\n";
}

}  // namespace

int run_snapshot(const SnapshotPlan& plan) {
    if (!plan.json.empty())
        if (auto writable = check_writable(plan.json); !writable) {
            tell(writable.error().message());
            return 1;
        }
    auto compared = SnapshotRuns(plan).run();
    if (!compared) {
        tell(compared.error().message());
        return 1;
    }
    print(plan, compared.value());
    if (plan.json.empty()) return 0;
    if (auto written = write_file(plan.json, json_of(plan, compared.value())); !written) {
        tell(written.error().message());
        return 1;
    }
    return 0;
}

}  // namespace lockstep::bench
