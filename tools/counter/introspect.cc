// COMMAND and CONFIG: what clients ask before they begin.
#include "tools/counter/local.h"

#include <algorithm>
#include <vector>

namespace lockstep::counter {
namespace {

using Args = std::span<const std::string_view>;

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> found;
    while (!text.empty()) {
        const std::size_t blank = text.find(' ');
        found.push_back(text.substr(0, blank));
        text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    }
    return found;
}

void append_spec(const CommandSpec& spec, std::string& out) {
    append_array(out, 10);
    append_bulk(out, spec.name);
    append_integer(out, spec.arity);
    const auto flags = words(spec.flags);
    append_array(out, flags.size());
    for (const auto flag : flags) append_simple(out, flag);
    append_integer(out, spec.first_key);
    append_integer(out, spec.last_key);
    append_integer(out, spec.key_step);
    // Access categories, tips, key specifications and subcommands: none.
    for (int i = 0; i < 4; ++i) append_array(out, 0);
}

void append_docs(const CommandSpec& spec, Resp resp, std::string& out) {
    append_bulk(out, spec.name);
    append_map(out, resp, 3);
    append_bulk(out, "summary");
    append_bulk(out, spec.summary);
    append_bulk(out, "since");
    append_bulk(out, "1.0.0");
    append_bulk(out, "group");
    append_bulk(out, spec.group);
}

void append_command_info(Args names, const Client& client, std::string& out) {
    append_array(out, names.size());
    for (const auto name : names) {
        const CommandSpec* spec = find_command(name);
        if (spec != nullptr) {
            append_spec(*spec, out);
        } else {
            out += client.resp == Resp::v3 ? "_\r\n" : "*-1\r\n";
        }
    }
}

void append_command_docs(Args names, const Client& client, std::string& out) {
    std::vector<const CommandSpec*> specs;
    for (const auto name : names) {
        if (const CommandSpec* spec = find_command(name)) specs.push_back(spec);
    }
    if (names.empty()) {
        for (const CommandSpec& spec : all_commands()) specs.push_back(&spec);
    }
    append_map(out, client.resp, specs.size());
    for (const CommandSpec* spec : specs) append_docs(*spec, client.resp, out);
}

}  // namespace

void run_command(Args args, const Client& client, std::string& out) {
    const auto all = all_commands();
    if (args.size() == 1 || (args.size() == 2 && same_name(args[1], "info"))) {
        append_array(out, all.size());
        for (const CommandSpec& spec : all) append_spec(spec, out);
    } else if (same_name(args[1], "count")) {
        if (args.size() != 2) return append_error(out, arity_error("command|count"));
        append_integer(out, static_cast<std::int64_t>(all.size()));
    } else if (same_name(args[1], "info")) {
        append_command_info(args.subspan(2), client, out);
    } else if (same_name(args[1], "docs")) {
        append_command_docs(args.subspan(2), client, out);
    } else if (same_name(args[1], "list") && args.size() == 2) {
        append_array(out, all.size());
        for (const CommandSpec& spec : all) append_bulk(out, spec.name);
    } else if (same_name(args[1], "help")) {
        append_array(out, 1);
        append_simple(out, "COMMAND | COUNT | LIST | INFO [<name> ...] | DOCS [<name> ...]");
    } else {
        append_unknown_subcommand("command", args[1], out);
    }
}

bool glob_matches(std::string_view pattern, std::string_view text) {
    // Where to go on after the last star, if what follows it did not match here.
    std::size_t star = std::string_view::npos;
    std::size_t star_text = 0;
    std::size_t p = 0;
    std::size_t t = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_text = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || same_name(pattern.substr(p, 1), text.substr(t, 1)))) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

void run_config(Args args, const Shared& shared, const Client& client, std::string& out) {
    if (same_name(args[1], "help") && args.size() == 2) {
        append_array(out, 1);
        return append_simple(out, "CONFIG GET <pattern> [<pattern> ...]; settings are made on the command line");
    }
    if (!same_name(args[1], "get")) return append_unknown_subcommand("config", args[1], out);
    if (args.size() < 3) return append_error(out, arity_error("config|get"));
    const Limits& limits = shared.limits;
    // In lower case. Those that Redis' own tools ask for are among them.
    const std::pair<std::string_view, std::string> settings[] = {
        {"appendonly", "no"},
        {"databases", "1"},
        {"forward-timeout-ms", std::to_string(limits.forward_timeout.count())},
        {"max-args", std::to_string(limits.args)},
        {"max-key-bytes", std::to_string(limits.key_bytes)},
        {"max-query-bytes", std::to_string(limits.query_bytes)},
        {"max-reply-bytes", std::to_string(limits.reply_bytes)},
        {"max-value-bytes", std::to_string(limits.value_bytes)},
        {"maxclients", std::to_string(limits.clients)},
        {"maxmemory", std::to_string(limits.memory_bytes)},
        {"maxmemory-policy", "noeviction"},
        {"patience-ms", std::to_string(limits.patience.count())},
        {"port", std::to_string(shared.port)},
        {"proto-max-bulk-len", std::to_string(limits.query_bytes)},
        {"save", ""},
        {"timeout", "0"},
    };
    std::vector<const std::pair<std::string_view, std::string>*> chosen;
    for (const auto& setting : settings) {
        const auto patterns = args.subspan(2);
        if (std::any_of(patterns.begin(), patterns.end(),
                        [&](std::string_view pattern) { return glob_matches(pattern, setting.first); })) {
            chosen.push_back(&setting);
        }
    }
    append_map(out, client.resp, chosen.size());
    for (const auto* setting : chosen) {
        append_bulk(out, setting->first);
        append_bulk(out, setting->second);
    }
}

}  // namespace lockstep::counter
