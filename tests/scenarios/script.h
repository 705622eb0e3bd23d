// A scenario's file: a comment, then blocks of commands, each followed by `----` and the output that is expected.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::scenarios {

// The file or a command in it is not as docs/testing.md says: the message names the line and the remedy.
struct ScriptError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Command {
    std::size_t line = 0;  // from 1
    std::vector<std::string> words;
};

struct Block {
    std::vector<std::string> before;    // comments and blank lines, as they stand
    std::vector<std::string> source;    // command lines, as they stand
    std::vector<Command> commands;
    std::vector<std::string> expected;  // output lines
};

struct Script {
    std::vector<Block> blocks;
    std::vector<std::string> after;     // comments and blank lines behind the last block

    // Throws ScriptError. The comment at the top must have a line "# Source:" and a line "# Upholds:".
    static Script parse(const std::string& text);
    // The file's text again.
    std::string text() const;
};

std::vector<std::string> lines_of(const std::string& text);

// What is to be taken out of `before` ("-") and put in ("+") to get `after`, between the lines that both have (" ").
std::string difference(const std::string& before, const std::string& after);

}  // namespace lockstep::scenarios
