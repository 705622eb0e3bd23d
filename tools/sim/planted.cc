#include "tools/sim/planted.h"

#include "sim/planted/bugs.h"
#include "tools/sim/campaign.h"
#include "tools/sim/report.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace lockstep::tools::sim {

namespace {

constexpr std::uint64_t kMostSeeds = 5000;
constexpr std::uint64_t kApart = 1'000'000;  // between the first seeds of two searches

// How many seeds a search takes that starts at `from`.
std::uint64_t seeds_to_find(const lockstep::sim::Bug& bug, std::uint64_t from, std::size_t jobs) {
    Plan plan;
    plan.draw = bug.durable ? lockstep::sim::draw_durable : lockstep::sim::draw;
    plan.from = from;
    plan.to = from + kMostSeeds - 1;
    plan.jobs = jobs;
    plan.quiet = true;
    Totals totals;
    const auto found = run_seeds(plan, totals);
    return found ? found->seed - from + 1 : kMostSeeds + 1;
}

int print_table(unsigned searches, std::size_t jobs, const std::string& only) {
    std::printf("| Bug | Rules | What it does | Seeds: median (most) of %u | Allowed |\n|---|---|---|---|---|\n",
                searches);
    for (const lockstep::sim::Bug& bug : lockstep::sim::bugs()) {
        if (!only.empty() && only != bug.name) continue;
        if (bug.seeds == 0 && only.empty()) {
            std::printf("| `%s` | %s | %s | a case of its own | |\n", bug.name, bug.rules, bug.what);
            continue;
        }
        planted_bug = bug.bug;
        std::vector<std::uint64_t> took;
        for (unsigned i = 1; i <= searches; ++i) took.push_back(seeds_to_find(bug, i * kApart, jobs));
        std::ranges::sort(took);
        const auto text = [](std::uint64_t seeds) {
            return seeds > kMostSeeds ? "not in " + std::to_string(kMostSeeds) : std::to_string(seeds);
        };
        std::printf("| `%s` | %s | %s | %s (%s) | %llu |\n", bug.name, bug.rules, bug.what,
                    text(took[took.size() / 2]).c_str(), text(took.back()).c_str(),
                    static_cast<unsigned long long>(bug.seeds));
        std::fflush(stdout);
    }
    return kNothingFound;
}

}  // namespace

void add_planting(CLI::App& app, Planting& planting) {
    CLI::Option* bug = app.add_option("--plant", planting.bug, "Plant this bug")->type_name("BUG");
    app.add_flag("--bugs", planting.list, "List the bugs that can be planted")->excludes(bug);
    app.add_option("--table", planting.table, "So many searches for each bug: how many seeds they take")
        ->check(CLI::Range(1, 1000));
}

std::optional<int> plant(const Planting& planting, std::size_t jobs) {
    if (planting.list) {
        for (const lockstep::sim::Bug& bug : lockstep::sim::bugs()) std::printf("%-28s %s\n", bug.name, bug.what);
        return kNothingFound;
    }
    if (!planting.bug.empty()) {
        const lockstep::sim::Bug* bug = lockstep::sim::bug_named(planting.bug);
        if (bug == nullptr) {
            std::fprintf(stderr, "lockstep-sim: no bug \"%s\": --bugs lists them\n", planting.bug.c_str());
            return kCannot;
        }
        planted_bug = bug->bug;
    }
    if (planting.table != 0) return print_table(planting.table, jobs, planting.bug);
    return std::nullopt;
}

}  // namespace lockstep::tools::sim
