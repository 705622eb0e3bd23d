// lockstep-sim: runs whole clusters under faults, in virtual time, by seed, and looks for broken rules.
#include "sim/draw.h"
#include "tools/sim/campaign.h"
#include "tools/sim/commit.h"
#include "tools/sim/report.h"

#ifdef LOCKSTEP_PLANTABLE
#include "tools/sim/planted.h"
#endif

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace lockstep::tools::sim {
namespace {

using lockstep::sim::Case;
using lockstep::sim::Failure;
using lockstep::sim::RunResult;

struct Settings {
    std::string program = "lockstep-sim";
    std::optional<std::uint64_t> seed;
    std::string seeds;
    std::string replay;
    double minutes = 0;
    std::size_t replicas = 0;  // 0: drawn
    std::string durability;    // empty: both, by turns
    std::size_t jobs = std::max(1u, std::thread::hardware_concurrency());
    unsigned shrink = 60;
    std::string trace;
    bool print = false;
};

int fail(const std::string& why) {
    std::fprintf(stderr, "lockstep-sim: %s\n", why.c_str());
    return kCannot;
}

int run_case(const Case& of, const std::string& name, const std::string& reproduce, const Settings& settings) {
    if (settings.print) {
        std::printf("%s", of.text().c_str());
        return kNothingFound;
    }
    const RunResult result = lockstep::sim::run_apart(of, lockstep::sim::kRunLimit, settings.trace);
    std::printf("%s: %s\n", name.c_str(), summary(of, result).c_str());
    if (result.failure != Failure::none)
        report_failure(of, result, {"lockstep-sim-" + name, reproduce, settings.program,
                                    std::chrono::seconds(settings.shrink)});
    return exit_of(result.failure);
}

auto drawing(const Settings& settings) {
    if (settings.durability == "memory") return lockstep::sim::draw;
    return settings.durability == "durable" ? lockstep::sim::draw_durable : lockstep::sim::draw_either;
}

int run_seed(std::uint64_t seed, const Settings& settings) {
    const std::string number = std::to_string(seed);
    const std::string of = (settings.replicas == 0 ? "" : " --replicas " + std::to_string(settings.replicas)) +
                           (settings.durability.empty() ? "" : " --durability " + settings.durability);
    return run_case(drawing(settings)(seed, settings.replicas), number, settings.program + " --seed " + number + of,
                    settings);
}

int run_replay(const Settings& settings) {
    std::ifstream file(settings.replay);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return fail("cannot read " + settings.replay);
    auto read = lockstep::sim::read_case(text.str());
    if (!read) return fail(std::move(read).error().within(settings.replay).message());
    return run_case(read.value(), "replayed", settings.program + " --replay " + settings.replay, settings);
}

int run_many(Plan plan, const Settings& settings) {
    plan.jobs = settings.jobs;
    plan.replicas = settings.replicas;
    plan.draw = drawing(settings);
    Totals totals;
    const auto began = std::chrono::steady_clock::now();
    const auto found = run_seeds(plan, totals);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    std::printf("%llu seeds from %llu on: %llu virtual seconds in %.1f s, %llu elections, %llu acknowledged, "
                "%llu histories undecided; longest to a leader %llu ms, to a commit %llu ms\n",
                static_cast<unsigned long long>(totals.seeds), static_cast<unsigned long long>(plan.from),
                static_cast<unsigned long long>(totals.virtual_ns / 1'000'000'000), seconds,
                static_cast<unsigned long long>(totals.elections),
                static_cast<unsigned long long>(totals.acknowledged),
                static_cast<unsigned long long>(totals.undecided),
                static_cast<unsigned long long>(totals.to_leader_ns / 1'000'000),
                static_cast<unsigned long long>(totals.to_commit_ns / 1'000'000));
    if (found) return run_seed(found->seed, settings);
    std::printf("nothing found\n");
    return kNothingFound;
}

int run_range(const Settings& settings) {
    Plan plan;
    const std::size_t dots = settings.seeds.find("..");
    std::istringstream from(settings.seeds.substr(0, dots));
    std::istringstream to(dots == std::string::npos ? "" : settings.seeds.substr(dots + 2));
    const bool numbers = dots != std::string::npos &&
                         settings.seeds.find_first_not_of("0123456789.") == std::string::npos;
    if (!numbers || !(from >> plan.from) || !from.eof() || !(to >> plan.to) || !to.eof() || plan.to < plan.from)
        return fail("--seeds " + settings.seeds + ": expected FROM..TO, two numbers, the second not below the first");
    return run_many(plan, settings);
}

int run_minutes(const Settings& settings) {
    std::random_device device;
    Plan plan;
    plan.from = std::uint64_t{device()} << 20;
    plan.to = UINT64_MAX;
    plan.ends = std::chrono::steady_clock::now() +
                std::chrono::milliseconds(static_cast<std::int64_t>(settings.minutes * 60'000));
    return run_many(plan, settings);
}

int run(int count, char** words) {
    Settings settings;
    CLI::App app("Runs clusters under faults, in virtual time, and looks for broken rules.\n"
                 "Ends with 0: nothing found, 1: cannot run, 2: a safety rule is broken, 3: no progress, 4: crash.");
    CLI::Option* seed = app.add_option("--seed", settings.seed, "Run this seed");
    CLI::Option* seeds = app.add_option("--seeds", settings.seeds, "Run these")->type_name("FROM..TO");
    CLI::Option* replay = app.add_option("--replay", settings.replay, "Run a case from a file")->type_name("FILE");
    CLI::Option* minutes = app.add_option("--minutes", settings.minutes, "Run fresh random seeds for so long")
                               ->check(CLI::Range(0.01, 100'000.0));
    app.add_option("--replicas", settings.replicas, "With seeds: clusters of that many, and no directed cases")
        ->check(CLI::Range(std::size_t{1}, kMaxReplicas));
    app.add_option("--durability", settings.durability, "With seeds: one mode only; by default they take turns")
        ->check(CLI::IsMember({"memory", "durable"}));
    app.add_option("--jobs", settings.jobs, "How many at a time")->check(CLI::Range(1, 1024))->capture_default_str();
    app.add_option("--shrink", settings.shrink, "Seconds to spend on making a failing case smaller")
        ->capture_default_str();
    app.add_option("--trace", settings.trace, "With --seed or --replay: write what happens there")->type_name("FILE");
    app.add_flag("--print", settings.print, "With --seed or --replay: print the case, and do not run it");
    seed->excludes(seeds, replay, minutes);
    seeds->excludes(replay, minutes);
    replay->excludes(minutes);
#ifdef LOCKSTEP_PLANTABLE
    Planting planting;
    add_planting(app, planting);
#endif
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kNothingFound : kCannot;
    }
#ifdef LOCKSTEP_PLANTABLE
    if (const auto ended = plant(planting, settings.jobs)) return *ended;
    settings.program = planting.program();
#endif
    std::printf("lockstep-sim of commit %s\n", kCommit);
    if (settings.seed) return run_seed(*settings.seed, settings);
    if (*seeds) return run_range(settings);
    if (*replay) return run_replay(settings);
    if (*minutes) return run_minutes(settings);
    return fail("nothing to run: give one of --seed, --seeds, --replay, --minutes; --help explains them");
}

}  // namespace
}  // namespace lockstep::tools::sim

int main(int count, char** words) {
    spdlog::set_level(spdlog::level::off);
    return lockstep::tools::sim::run(count, words);
}
