// What lockstep-sim can do besides where the known bugs are built in (log/planted.h).
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace lockstep::tools::sim {

struct Planting {
    std::string bug;
    bool list = false;
    unsigned table = 0;
    // How the program is called with that bug.
    std::string program() const { return "lockstep-sim-planted" + (bug.empty() ? "" : " --plant " + bug); }
};

void add_planting(CLI::App& app, Planting& planting);

// Plants the bug, or does what was asked for instead: then with what to end.
std::optional<int> plant(const Planting& planting, std::size_t jobs);

}  // namespace lockstep::tools::sim
