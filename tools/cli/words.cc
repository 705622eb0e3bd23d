#include "tools/cli/words.h"

#include <algorithm>
#include <vector>

namespace lockstep::cli {

std::optional<std::string> wrong_command(const CLI::App& app, int argc, const char* const* argv) {
    const CLI::App* group = &app;
    std::string path = "lockstep";
    for (int at = 1;; ++at) {
        const auto commands = group->get_subcommands([](const CLI::App*) { return true; });
        if (commands.empty()) return std::nullopt;
        std::string known;
        for (const CLI::App* command : commands) known += (known.empty() ? "" : ", ") + command->get_name();
        if (at == argc) return path + " needs one of its commands: " + known;
        const std::string word = argv[at];
        if (word.starts_with("-")) return std::nullopt;
        const auto name_of = [](const CLI::App* command) { return command->get_name(); };
        const auto found = std::ranges::find(commands, word, name_of);
        if (found == commands.end()) return path + " has no command \"" + word + "\"; it has " + known;
        group = *found;
        path += " " + word;
    }
}

}  // namespace lockstep::cli
