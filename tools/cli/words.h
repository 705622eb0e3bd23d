// Answers a command that there is not.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace lockstep::cli {

// What is wrong with the words that choose a command, below `app` and below each group of commands: one that is not
// known, or none. Nothing if they choose one, or if an option comes first.
std::optional<std::string> wrong_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace lockstep::cli
