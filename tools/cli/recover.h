// `lockstep recover`: when a majority of the voters is lost.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace lockstep::cli {

// Adds the command; what is to be done when it was given comes back, and returns the program's status.
std::function<int()> add_recover_command(CLI::App& app);

}  // namespace lockstep::cli
