// Runs scenarios: scenario_test FILE... prints how the output differs from what each file expects, and ends with 1 if
// it does. With LOCKSTEP_REWRITE_SCENARIOS=1 the files get the output that came, where no rule was broken.
#include "tests/scenarios/script.h"
#include "tests/scenarios/world.h"

#ifdef LOCKSTEP_PLANTABLE
#include "sim/planted/bugs.h"
#endif

#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace lockstep::scenarios {
namespace {

// For a broken invariant, which ends the process: where that was.
char where[512];

extern "C" void say_where(int) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, where, std::strlen(where));
}

void note_where(const std::string& path, const Command& command) {
    const std::string text = path + ":" + std::to_string(command.line) + ": while this command ran\n";
    std::strncpy(where, text.c_str(), sizeof where - 1);
}

// The script with the output that came instead of the expected one. False if a rule was broken on the way.
bool play(const std::string& path, Script& script) {
    World world;
    for (Block& block : script.blocks) {
        std::string output;
        try {
            for (const Command& command : block.commands) {
                note_where(path, command);
                output += world.run(command);
            }
        } catch (const sim::Violation& violation) {
            block.expected = lines_of(output + "A RULE IS BROKEN: " + violation.what());
            return false;
        }
        block.expected = lines_of(output);
    }
    return true;
}

bool run_file(const std::string& path, bool rewrites) {
    std::ifstream in(path);
    if (!in) {
        std::cerr << path << ": cannot be read\n";
        return false;
    }
    const std::string expected{std::istreambuf_iterator<char>(in), {}};
    try {
        Script script = Script::parse(expected);
        const bool kept_rules = play(path, script);
        const std::string came = script.text();
        if (kept_rules && came == expected) return true;
        std::cerr << path << ": expected (-) and came (+):\n" << difference(expected, came);
        if (kept_rules && rewrites) {
            std::ofstream(path) << came;
            std::cerr << path << ": rewritten\n";
            return true;
        }
    } catch (const ScriptError& error) {
        std::cerr << path << ": " << error.what() << "\n";
    }
    return false;
}

}  // namespace
}  // namespace lockstep::scenarios

int main(int argc, char** argv) {
    spdlog::set_level(spdlog::level::off);
    std::signal(SIGABRT, lockstep::scenarios::say_where);
    const char* rewrite = std::getenv("LOCKSTEP_REWRITE_SCENARIOS");
    const bool rewrites = rewrite != nullptr && std::string(rewrite) == "1";
    int first = 1;
#ifdef LOCKSTEP_PLANTABLE
    // scenario_planted BUG FILE...: with that bug planted.
    const lockstep::sim::Bug* bug = argc < 2 ? nullptr : lockstep::sim::bug_named(argv[first++]);
    if (bug == nullptr) {
        std::cerr << argv[0] << ": the first argument is no bug that can be planted\n";
        return 2;
    }
    lockstep::planted_bug = bug->bug;
#endif
    if (argc <= first) {
        std::cerr << "usage: " << argv[0] << " FILE...\n";
        return 2;
    }
    bool all = true;
    for (int i = first; i < argc; ++i) all &= lockstep::scenarios::run_file(argv[i], rewrites);
    return all ? 0 : 1;
}
