// The public simulator (include/lockstep/sim.h): a user's service and commands, the library's faults and checkers.
#include "sim/draw.h"
#include "sim/run.h"
#include "transport/logger.h"

#include <lockstep/sim.h>

#include <spdlog/logger.h>

#include <bit>
#include <mutex>
#include <utility>

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kLeastRing = std::uint64_t{16} << 10;
constexpr std::uint64_t kMostRing = std::uint64_t{1} << 30;
constexpr std::size_t kOverhead = 128;  // of a command, at most: its header, its number, what alignment takes

// The user's service. A command stands behind its number and a blank, by which the history knows it.
class Numbered final : public Service {
 public:
    Numbered(std::unique_ptr<Service> service, const Simulation& simulation)
        : service_(std::move(service)), simulation_(simulation) {}

    void apply(std::span<const Entry> batch, Replies& replies) override {
        batch_.assign(batch.begin(), batch.end());
        for (Entry& entry : batch_) {
            std::size_t number = 0;
            while (entry.command[number] != std::byte{' '}) ++number;
            entry.command = entry.command.subspan(number + 1);
        }
        service_->apply(batch_, replies);
        if (!simulation_.invariant) return;
        if (const std::string wrong = simulation_.invariant(*service_); !wrong.empty())
            throw Violation("the invariant does not hold after " + to_string(batch.back().index) + ": " + wrong);
    }
    std::uint64_t digest() const override { return service_->digest(); }

 private:
    std::unique_ptr<Service> service_;
    const Simulation& simulation_;
    std::vector<Entry> batch_;
};

class UsersClients final : public Clients {
 public:
    UsersClients(Cluster& cluster, const Simulation& simulation, std::uint64_t seed)
        : cluster_(cluster), simulation_(simulation), random_(seed) {}

    void add(ReplicaId to, std::uint64_t, std::size_t) override { ask(to); }
    void put(ReplicaId to, std::uint64_t, std::size_t) override { ask(to); }
    void get(ReplicaId to, std::uint64_t) override { cluster_.read(to); }
    void check() const override {}

 private:
    void ask(ReplicaId to) {
        std::vector<std::byte> command = simulation_.next_command(random_.next());
        const std::uint64_t number = cluster_.next_number();
        std::string text = std::to_string(number) + " ";
        text.append(reinterpret_cast<const char*>(command.data()), command.size());
        cluster_.history().proposed(number);
        Replica::Done done = [this, number, command = std::move(command)](const Outcome& outcome) {
            cluster_.history().ended(number, outcome);
            if (simulation_.ended) simulation_.ended(command, outcome);
        };
        if (!cluster_.propose(to, text, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
    }

    Cluster& cluster_;
    const Simulation& simulation_;
    core::Random random_;
};

// Keeps the library's log lines back, for as long as there is one.
class Quiet {
 public:
    explicit Quiet(bool log) : log_(log) {
        if (log_) return;
        const std::lock_guard lock(mutex);
        if (count++ != 0) return;
        before = logger().level();
        logger().set_level(spdlog::level::off);
    }
    ~Quiet() {
        if (log_) return;
        const std::lock_guard lock(mutex);
        if (--count == 0) logger().set_level(before);
    }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

 private:
    // Of all threads that simulate.
    inline static std::mutex mutex;
    inline static int count = 0;
    inline static spdlog::level::level_enum before = spdlog::level::off;
    bool log_;
};

std::string wrong_with(const Simulation& simulation) {
    if (simulation.replicas < 1 || simulation.replicas > kMaxReplicas)
        return "a simulation has 1 to " + std::to_string(kMaxReplicas) + " replicas, not " +
               std::to_string(simulation.replicas);
    if (!std::has_single_bit(simulation.ring_bytes) || simulation.ring_bytes < kLeastRing ||
        simulation.ring_bytes > kMostRing)
        return "ring_bytes is " + std::to_string(simulation.ring_bytes) + ": it must be a power of two from " +
               std::to_string(kLeastRing) + " to " + std::to_string(kMostRing);
    if (!simulation.make_service) return "make_service is missing";
    if (!simulation.next_command) return "next_command is missing";
    return {};
}

}  // namespace

Report simulate(const Simulation& simulation, std::uint64_t seed) {
    Report report;
    report.what = wrong_with(simulation);
    if (!report.what.empty()) return report;
    const Quiet quiet(simulation.log);
    Case of = draw(seed, simulation.replicas);
    of.options.ring_bytes = simulation.ring_bytes;
    of.options.make_service = [&simulation](ReplicaId) {
        return std::make_unique<Numbered>(simulation.make_service(), simulation);
    };
    const std::size_t most = simulation.ring_bytes / 4 - kOverhead;
    Simulation checked = simulation;
    checked.next_command = [&simulation, most](std::uint64_t random) {
        std::vector<std::byte> command = simulation.next_command(random);
        if (command.size() > most)
            throw Violation("a command has " + std::to_string(command.size()) + " bytes, " + std::to_string(most) +
                            " is the most for this ring");
        return command;
    };
    const RunResult result = run(
        of, [&](Cluster& cluster) { return std::make_unique<UsersClients>(cluster, checked, seed); }, nullptr);
    report.ok = result.failure == Failure::none;
    report.what = result.what;
    report.hash = result.hash;
    report.applied = result.acknowledged;
    report.elections = result.elections;
    report.virtual_seconds = static_cast<double>(result.virtual_ns) / 1e9;
    return report;
}

}  // namespace lockstep::sim
