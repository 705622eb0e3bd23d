#include "tools/bench/recovery.h"

#include "tools/bench/clock.h"
#include "tools/bench/cluster.h"
#include "tools/bench/load.h"
#include "tools/bench/progress.h"
#include "tools/bench/results.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::bench {

namespace {

constexpr std::size_t kDepth = 256;
constexpr std::uint64_t kSlices = 16;  // of writing, between words on how far it is
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::uint64_t kLongestRun = 3600 * kSecond;

class Counting final : public StateMachine {
 public:
    void apply(std::span<const Entry> batch, Replies&) override { entries_ += batch.size(); }
    std::uint64_t entries() const { return entries_; }

 private:
    std::uint64_t entries_ = 0;  // read while no replica is open
};

Error read_error(const char* what, const std::string& path) {
    return Error(std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

double mib_per_s(std::uint64_t bytes, std::uint64_t ns) {
    return static_cast<double>(bytes) / (1 << 20) * static_cast<double>(kSecond) / static_cast<double>(ns);
}

// The files of a log.
class Files {
 public:
    explicit Files(const std::string& folder) {
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.is_regular_file()) paths_.push_back(entry.path().string());
        std::ranges::sort(paths_);
    }
    // What is on disk is not in the system's memory afterwards.
    Result<void> forget() const {
        for (const std::string& path : paths_) {
            const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
            if (file.number() < 0) return read_error("open", path);
            if (::fdatasync(file.number()) != 0) return read_error("fdatasync", path);
            errno = ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
            if (errno != 0) return read_error("drop from memory", path);
        }
        return {};
    }
    // How many bytes there are.
    Result<std::uint64_t> read() const {
        std::vector<char> piece(kPiece);
        std::uint64_t bytes = 0;
        for (const std::string& path : paths_) {
            const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
            if (file.number() < 0) return read_error("open", path);
            ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_SEQUENTIAL);
            for (;;) {
                const ssize_t got = ::read(file.number(), piece.data(), piece.size());
                if (got < 0) return read_error("read", path);
                if (got == 0) break;
                bytes += static_cast<std::uint64_t>(got);
            }
        }
        return bytes;
    }

 private:
    std::vector<std::string> paths_;
};

struct Recoveries {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  // of the files
    Rounds read_mib_per_s, recovery_mib_per_s, ratio, took_s;
};

class RecoveryRuns {
 public:
    explicit RecoveryRuns(const RecoveryPlan& plan) : plan_(plan) {}

    Result<Recoveries> run() {
        auto ports = Ports::reserve(1);
        if (!ports) return std::move(ports).error();
        auto folder = TemporaryFolder::make(plan_.folder);
        if (!folder) return std::move(folder).error();
        ClusterSpec spec = ClusterSpec::make(ports.value(), folder.value(), Polling::blocking);
        spec.durability = Durability::durable;
        options_ = spec.options(1);
        options_.snapshot_bytes = 0;
        if (auto written = write_log(); !written) return std::move(written).error();
        for (unsigned round = 1; round <= plan_.rounds; ++round) {
            round_text_ = "round " + std::to_string(round) + " of " + std::to_string(plan_.rounds);
            if (auto done = one_round(); !done) return std::move(done).error();
        }
        return found_;
    }

 private:
    Result<void> write_log() {
        Counting state;
        auto replica = Replica::open(options_, state);
        if (!replica) return std::move(replica).error();
        if (auto leads = await_lead(*replica.value(), deadline_ns_); !leads) return leads;
        // As in the stream: a header of 48 bytes, and filled up to 64.
        const std::uint64_t each = (plan_.bytes + 48 + 63) / 64 * 64;
        const std::uint64_t entries = std::max<std::uint64_t>((std::uint64_t{plan_.mib} << 20) / each, kSlices);
        for (std::uint64_t slice = 0; slice < kSlices; ++slice) {
            progress_.say("writes a log: " + std::to_string(plan_.mib * slice / kSlices) + " of " +
                          std::to_string(plan_.mib) + " MiB");
            if (auto written = append(*replica.value(), kDepth, entries / kSlices); !written) return written;
        }
        replica.value().reset();
        found_.entries = state.entries();
        return {};
    }

    Result<void> append(Replica& replica, std::size_t depth, std::uint64_t entries) const {
        LoadPlan load_plan;
        load_plan.bytes = plan_.bytes;
        load_plan.depth = depth;
        load_plan.entries = entries;
        load_plan.timed = false;
        Load load(replica, load_plan);
        if (auto written = load.run(deadline_ns_); !written) return std::move(written).error();
        return {};
    }

    Result<void> one_round() {
        const Files files(options_.data_folder + "/log");
        progress_.say(round_text_ + ": reads the files");
        if (auto forgotten = files.forget(); !forgotten) return forgotten;
        std::uint64_t from = now_ns();
        auto bytes = files.read();
        if (!bytes) return std::move(bytes).error();
        const double read = mib_per_s(bytes.value(), now_ns() - from);

        progress_.say(round_text_ + ": opens the replica");
        if (auto forgotten = files.forget(); !forgotten) return forgotten;
        Counting state;
        from = now_ns();
        auto replica = Replica::open(options_, state);
        const std::uint64_t took = now_ns() - from;
        if (!replica) return std::move(replica).error();
        // Behind it all of the others are applied, those too of which only the new leader could say that they count.
        if (auto leads = await_lead(*replica.value(), deadline_ns_); !leads) return leads;
        if (auto behind = append(*replica.value(), 1, 1); !behind) return behind;
        replica.value().reset();
        if (state.entries() <= found_.entries)
            return Error("the replica came back with " + std::to_string(state.entries()) + " of " +
                         std::to_string(found_.entries) + " entries");
        const double recovery = mib_per_s(bytes.value(), took);
        found_.bytes = bytes.value();
        found_.read_mib_per_s.add(read);
        found_.recovery_mib_per_s.add(recovery);
        found_.ratio.add(recovery / read);
        found_.took_s.add(static_cast<double>(took) / static_cast<double>(kSecond));
        return {};
    }

    const RecoveryPlan& plan_;
    const std::uint64_t deadline_ns_ = now_ns() + kLongestRun;
    Progress progress_;
    Options options_;
    std::string round_text_;
    Recoveries found_;
};

void print(const RecoveryPlan& plan, const Recoveries& found) {
    std::printf("%llu entries of %s, %llu MiB of files; medians of %u rounds\n"
                "disk read alone      recovery           ratio\n"
                "%9.0f MiB/s  %9.0f MiB/s  %6.1f s  %5.2f\n",
                static_cast<unsigned long long>(found.entries), size_text(plan.bytes).c_str(),
                static_cast<unsigned long long>(found.bytes >> 20), plan.rounds, *found.read_mib_per_s.median(),
                *found.recovery_mib_per_s.median(), *found.took_s.median(), *found.ratio.median());
}

std::string json_of(const RecoveryPlan& plan, const Recoveries& found) {
    char text[300];
    std::snprintf(text, sizeof text,
                  "[\n {\"bytes\": %zu, \"entries\": %llu, \"file_bytes\": %llu, \"read_mib_per_s\": %.1f, "
                  "\"recovery_mib_per_s\": %.1f, \"recovery_s\": %.3f, \"ratio\": %.3f}\n]\n",
                  plan.bytes, static_cast<unsigned long long>(found.entries),
                  static_cast<unsigned long long>(found.bytes), *found.read_mib_per_s.median(),
                  *found.recovery_mib_per_s.median(), *found.took_s.median(), *found.ratio.median());
    return text;
}

}  // namespace

int run_recovery(const RecoveryPlan& plan) {
    if (!plan.json.empty())
        if (auto writable = check_writable(plan.json); !writable) {
            tell(writable.error().message());
            return 1;
        }
    auto found = RecoveryRuns(plan).run();
    if (!found) {
        tell(found.error().message());
        return 1;
    }
    print(plan, found.value());
    if (plan.json.empty()) return 0;
    if (auto written = write_file(plan.json, json_of(plan, found.value())); !written) {
        tell(written.error().message());
        return 1;
    }
    return 0;
}

}  // namespace lockstep::bench
