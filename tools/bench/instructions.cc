#include "tools/bench/instructions.h"

#include "tools/bench/callgrind.h"
#include "tools/bench/clock.h"
#include "tools/bench/load.h"
#include "tools/bench/progress.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr std::uint64_t kRunLimit = 180 * kSecond;
constexpr int kCountAttempts = 3;
// valgrind makes the leader some fifty times slower: nobody may take that for death, and what is done once in a while
// must not count for so much more than it does otherwise.
constexpr std::uint32_t kElectionTimeoutMs = 10'000;
constexpr std::uint32_t kHeartbeatMs = 1'000;
// What runs on the protocol thread alone, and is in this program: the load's callback.
constexpr const char* kOnProtocolThread = "bench::Load::done";

Result<Profile> run_once(const InstructionsPlan& plan, std::uint64_t entries, const std::string& output) {
    auto ports = Ports::reserve(kReplicas);
    if (!ports) return std::move(ports).error();
    auto folder = TemporaryFolder::make();
    if (!folder) return std::move(folder).error();
    ClusterSpec spec = ClusterSpec::make(ports.value(), folder.value(), Polling::blocking);
    spec.election_timeout_ms = kElectionTimeoutMs;
    spec.heartbeat_ms = kHeartbeatMs;
    std::vector<Child> followers;
    for (std::uint8_t id = 2; id <= kReplicas; ++id) {
        std::vector<std::string> words = {"replica"};
        std::ranges::copy(spec.arguments(id), std::back_inserter(words));
        auto follower = Child::again(words);
        if (!follower) return std::move(follower).error();
        followers.push_back(std::move(follower).value());
    }
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> words = {
        "valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", "--fair-sched=yes",
        "--callgrind-out-file=" + output, program, "leader",
        "--bytes", std::to_string(plan.bytes), "--depth", std::to_string(plan.depth),
        "--entries", std::to_string(entries)};
    std::ranges::copy(spec.arguments(1), std::back_inserter(words));
    auto leader = Child::start(words);
    if (!leader) return std::move(leader).error();
    if (auto done = leader.value().finish(now_ns() + kRunLimit, "valgrind"); !done) return std::move(done).error();
    return profile_of_thread(output, kOnProtocolThread);
}

Result<Profile> run_with_patience(const InstructionsPlan& plan, std::uint64_t entries, const std::string& output) {
    for (int attempt = 1;; ++attempt) {
        auto profile = run_once(plan, entries, output);
        if (profile || attempt == kCountAttempts || interrupted()) return profile;
        tell("tries again: " + profile.error().message());
    }
}

void print(const InstructionsPlan& plan, const Profile& shorter, const Profile& longer) {
    const auto per_entry = [&](std::uint64_t more, std::uint64_t less) {
        return (static_cast<double>(more) - static_cast<double>(less)) / static_cast<double>(plan.entries);
    };
    std::vector<std::pair<double, std::string>> functions;
    double of_load = 0;
    for (const auto& [name, cost] : longer.self) {
        const auto before = shorter.self.find(name);
        const double each = per_entry(cost, before == shorter.self.end() ? 0 : before->second);
        functions.emplace_back(each, name);
        if (name.find("bench::") != std::string::npos) of_load += each;
    }
    std::ranges::sort(functions, std::greater<>());
    std::printf("instructions per committed entry on the leader's protocol thread: %.0f\n",
                per_entry(longer.total, shorter.total));
    std::printf("  (%zu B, depth %zu, %llu entries more; %.0f of them are the load's own code)\n", plan.bytes,
                plan.depth, static_cast<unsigned long long>(plan.entries), of_load);
    for (std::size_t i = 0; i < functions.size() && i < plan.functions; ++i)
        std::printf("%8.1f  %s\n", functions[i].first, functions[i].second.substr(0, 150).c_str());
}

}  // namespace

int run_counted_leader(const ClusterSpec& spec, std::size_t bytes, std::size_t depth, std::uint64_t entries) {
    Nothing state_machine;
    auto replica = Replica::open(spec.options(1), state_machine);
    if (!replica) {
        tell(replica.error().message());
        return 1;
    }
    const std::uint64_t deadline_ns = now_ns() + kRunLimit;
    Result<void> outcome = await_lead(*replica.value(), deadline_ns);
    if (outcome) {
        LoadPlan plan;
        plan.bytes = bytes;
        plan.depth = depth;
        plan.entries = entries;
        plan.timed = false;
        Load load(*replica.value(), plan);
        if (auto result = load.run(deadline_ns); !result) outcome = std::move(result).error();
        replica.value()->stop();
    }
    if (outcome) return 0;
    tell(outcome.error().message());
    return 1;
}

int run_instructions(const InstructionsPlan& plan) {
    auto folder = TemporaryFolder::make();
    if (!folder) {
        tell(folder.error().message());
        return 1;
    }
    std::error_code error;
    if (!plan.keep.empty()) std::filesystem::create_directories(plan.keep, error);
    const std::string where = plan.keep.empty() ? folder.value().path() : plan.keep;
    std::vector<Profile> profiles;
    {
        const Progress progress;
        for (const std::uint64_t entries : {plan.entries, 2 * plan.entries}) {
            progress.say("counts the instructions of " + std::to_string(entries) + " entries");
            auto profile = run_with_patience(plan, entries, where + "/callgrind." + std::to_string(entries));
            if (!profile) {
                tell(profile.error().message());
                return 1;
            }
            profiles.push_back(std::move(profile).value());
        }
    }
    print(plan, profiles[0], profiles[1]);
    return 0;
}

}  // namespace lockstep::bench
