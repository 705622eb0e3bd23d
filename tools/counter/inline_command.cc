// Inline commands: what a person types into telnet.
#include "tools/counter/resp.h"

namespace lockstep::counter {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

char escaped(char c) {
    switch (c) {
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'b': return '\b';
        case 'a': return '\a';
        default: return c;
    }
}

// Takes one quoted part apart. `at` is behind the opening quote, and behind the closing one afterwards.
bool take_quoted(std::string_view line, std::size_t& at, char quote, std::string& out) {
    while (at < line.size()) {
        const char c = line[at];
        if (quote == '"' && c == '\\' && at + 3 < line.size() && line[at + 1] == 'x' && hex_digit(line[at + 2]) >= 0 &&
            hex_digit(line[at + 3]) >= 0) {
            out += static_cast<char>(hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3]));
            at += 4;
        } else if (quote == '"' && c == '\\' && at + 1 < line.size()) {
            out += escaped(line[at + 1]);
            at += 2;
        } else if (quote == '\'' && c == '\\' && at + 1 < line.size() && line[at + 1] == '\'') {
            out += '\'';
            at += 2;
        } else if (c == quote) {
            ++at;
            // A closing quote ends its argument.
            return at == line.size() || is_blank(line[at]);
        } else {
            out += c;
            ++at;
        }
    }
    return false;
}

}  // namespace

std::optional<std::vector<std::string>> split_inline(std::string_view line) {
    line = line.substr(0, line.find('\0'));
    std::vector<std::string> args;
    std::size_t at = 0;
    while (true) {
        while (at < line.size() && is_blank(line[at])) ++at;
        if (at == line.size()) return args;
        std::string& arg = args.emplace_back();
        while (at < line.size() && !is_blank(line[at])) {
            const char c = line[at++];
            if (c == '"' || c == '\'') {
                if (!take_quoted(line, at, c, arg)) return std::nullopt;
                break;
            }
            arg += c;
        }
    }
}

}  // namespace lockstep::counter
