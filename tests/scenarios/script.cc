#include "tests/scenarios/script.h"

#include <algorithm>
#include <sstream>

namespace lockstep::scenarios {

namespace {

const std::string kSeparator = "----";

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

bool is_comment(const std::string& line) { return line.empty() || line[0] == '#'; }

void check_top(const std::vector<std::string>& comment) {
    for (const std::string key : {"# Source: ", "# Upholds: "}) {
        const auto has_key = [&](const std::string& line) { return line.starts_with(key) && line.size() > key.size(); };
        if (!std::ranges::any_of(comment, has_key))
            throw ScriptError("line 1: the comment at the top needs a line that starts with \"" + key + "\"");
    }
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

Script Script::parse(const std::string& text) {
    const std::vector<std::string> lines = lines_of(text);
    Script script;
    std::size_t at = 0;
    while (at < lines.size()) {
        Block block;
        for (; at < lines.size() && is_comment(lines[at]); ++at) block.before.push_back(lines[at]);
        if (at == lines.size()) {
            script.after = block.before;
            break;
        }
        if (script.blocks.empty()) check_top(block.before);
        for (; at < lines.size() && lines[at] != kSeparator; ++at) {
            if (is_comment(lines[at]))
                throw ScriptError("line " + std::to_string(at + 1) + ": commands end with a line " + kSeparator);
            block.source.push_back(lines[at]);
            block.commands.push_back({at + 1, words_of(lines[at])});
        }
        if (at == lines.size()) throw ScriptError("the last commands have no line " + kSeparator + " behind them");
        for (++at; at < lines.size() && !lines[at].empty(); ++at) block.expected.push_back(lines[at]);
        script.blocks.push_back(std::move(block));
    }
    if (script.blocks.empty()) throw ScriptError("there is no command in it");
    return script;
}

std::string Script::text() const {
    std::string text;
    const auto add = [&](const std::vector<std::string>& lines) {
        for (const std::string& line : lines) text += line + "\n";
    };
    for (const Block& block : blocks) {
        add(block.before);
        add(block.source);
        text += kSeparator + "\n";
        add(block.expected);
    }
    add(after);
    return text;
}

// By the longest common subsequence; scenarios are short.
std::string difference(const std::string& before, const std::string& after) {
    const std::vector<std::string> a = lines_of(before);
    const std::vector<std::string> b = lines_of(after);
    std::vector<std::vector<std::size_t>> common(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = a.size(); i-- > 0;)
        for (std::size_t j = b.size(); j-- > 0;)
            common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    std::string text;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() || j < b.size()) {
        if (i < a.size() && j < b.size() && a[i] == b[j]) {
            text += "  " + a[i] + "\n";
            ++i, ++j;
        } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
            text += "- " + a[i++] + "\n";
        } else {
            text += "+ " + b[j++] + "\n";
        }
    }
    return text;
}

}  // namespace lockstep::scenarios
