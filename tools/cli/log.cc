#include "tools/cli/log.h"

#include "tools/cli/output.h"

#include <lockstep/log_files.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

namespace lockstep::cli {

namespace {

struct Asked {
    std::string folder;
    std::string to;
    std::uint64_t from = 0;
    std::uint64_t through = ~std::uint64_t{0};
    bool json = false;
};

std::string hex(BytesView bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(2 * bytes.size());
    for (const std::byte byte : bytes) {
        out += kDigits[std::to_integer<unsigned>(byte) >> 4];
        out += kDigits[std::to_integer<unsigned>(byte) & 15];
    }
    return out;
}

void write_json(std::ostream& out, const LogEntry& entry, bool with_payload) {
    char line[300];
    std::snprintf(line, sizeof line,
                  "{\"index\": %" PRIu64 ", \"ballot\": \"%s\", \"commit\": %" PRIu64 ", \"timestamp_ns\": %" PRIu64
                  ", \"position\": %" PRIu64 ", \"checksum\": \"%016" PRIx64 "\", \"kind\": \"%s\", \"bytes\": %zu",
                  entry.index.value, to_string(entry.ballot).c_str(), entry.commit.value, entry.timestamp_ns,
                  entry.position.value, entry.checksum, entry.kind, entry.payload.size());
    out << line;
    if (with_payload) out << ", \"payload\": \"" << hex(entry.payload) << '"';
    out << "}\n";
}

void write_line(std::ostream& out, const LogEntry& entry) {
    char line[200];
    std::snprintf(line, sizeof line,
                  "%12" PRIu64 "  ballot %-8s position %-14" PRIu64 " %-8s %8zu bytes  %016" PRIx64 "\n",
                  entry.index.value, to_string(entry.ballot).c_str(), entry.position.value, entry.kind,
                  entry.payload.size(), entry.checksum);
    out << line;
}

void write_json(const LogSummary& log) {
    std::cout << "{\"cluster_id\": " << log.cluster_id << ", \"replica\": " << unsigned{log.replica.value}
              << ", \"incarnation\": \"" << to_string(log.incarnation) << "\", \"promised\": \""
              << to_string(log.promised) << "\", \"ring_bytes\": " << log.ring_bytes
              << ", \"base_index\": " << log.base_index.value << ", \"base_position\": " << log.base_position.value
              << ", \"last_index\": " << log.last_index.value << ", \"last_ballot\": \"" << to_string(log.last_ballot)
              << "\", \"end_position\": " << log.end_position.value
              << ", \"floor_position\": " << log.floor_position.value << ", \"entries\": " << log.entries
              << ", \"bytes_read\": " << log.bytes_read << ", \"damage\": " << quoted(log.damage)
              << ", \"where\": " << quoted(log.where) << ", \"segments\": [";
    const char* separator = "";
    for (const LogSegment& segment : log.segments) {
        std::cout << separator << "{\"name\": " << quoted(segment.name) << ", \"first_position\": "
                  << segment.first.value << ", \"first_index\": " << segment.first_index.value
                  << ", \"last_index\": " << segment.last_index.value << ", \"entries\": " << segment.entries
                  << ", \"bytes\": " << segment.bytes << "}";
        separator = ", ";
    }
    std::cout << "]}\n";
}

void write_text(const LogSummary& log) {
    std::cout << "replica " << to_string(log.replica) << " of cluster " << log.cluster_id << ", incarnation "
              << to_string(log.incarnation) << ", ballot " << to_string(log.promised) << " promised\n"
              << "log behind index " << log.base_index.value << " (position " << log.base_position.value
              << ") to index " << log.last_index.value << " (position " << log.end_position.value << ", ballot "
              << to_string(log.last_ballot) << "), durable up to position " << log.floor_position.value << '\n';
    for (const LogSegment& segment : log.segments) {
        std::cout << segment.name << "  ";
        if (segment.entries == 0) std::cout << "no entry\n";
        else std::cout << segment.entries << " entries, index " << segment.first_index.value << " to "
                       << segment.last_index.value << '\n';
    }
}

// 0, or 1 where there is damage.
int summarize(const Asked& asked, bool verdict) {
    ReadLogCalls calls;
    calls.progress = progress_shown();
    const auto log = read_log(asked.folder, calls);
    if (!log) return complain(log.error());
    const LogSummary& found = log.value();
    if (asked.json) write_json(found);
    else if (!verdict) write_text(found);
    const bool whole = found.damage == "none";
    if (!asked.json && (verdict || !whole)) {
        if (whole) std::cout << "whole: " << found.entries << " entries verified, up to index "
                             << found.last_index.value << '\n';
        else std::cout << found.damage << ": " << found.where << '\n';
    }
    return whole ? 0 : 1;
}

int write_entries(const Asked& asked, std::ostream& out, bool json, bool with_payload) {
    ReadLogCalls calls;
    calls.entry = [&](const LogEntry& entry) {
        if (entry.index.value < asked.from || entry.index.value > asked.through) return;
        if (json) write_json(out, entry, with_payload);
        else write_line(out, entry);
    };
    const auto log = read_log(asked.folder, calls);
    if (!log) return complain(log.error());
    out.flush();
    if (!out) return complain(Error("cannot write all entries: is the disk full?"));
    if (log.value().damage == "none") return 0;
    std::cerr << "lockstep: " << log.value().damage << ": " << log.value().where << '\n';
    return 1;
}

int export_entries(const Asked& asked) {
    std::ofstream out(asked.to, std::ios::binary | std::ios::trunc);
    if (!out) return complain(Error("cannot write " + asked.to));
    return write_entries(asked, out, true, true);
}

int adopt(const Asked& asked) {
    const auto done = adopt_data_folder(asked.folder);
    return done ? 0 : complain(done.error());
}

}  // namespace

std::function<int()> add_log_command(CLI::App& app) {
    CLI::App* const command = app.add_subcommand("log", "What is in a replica's log on disk, and whether it is whole");
    command->require_subcommand(1);
    command->footer("Ends with 1 if the log is damaged, with 2 if it cannot be read. Changes nothing but for adopt.");
    auto asked = std::make_shared<Asked>();
    auto action = std::make_shared<std::function<int()>>();
    const auto add = [&](const char* name, const char* text, std::function<int()> run) {
        CLI::App* const sub = command->add_subcommand(name, text);
        sub->add_option("FOLDER", asked->folder, "The data_folder of the replica's config")->required();
        sub->callback([action, run = std::move(run)] { *action = run; });
        return sub;
    };
    const auto ranged = [&](CLI::App* sub) {
        sub->add_option("--from", asked->from, "The first index that is wanted");
        sub->add_option("--through", asked->through, "The last index that is wanted");
    };
    add("list", "The segments, and where the log begins and ends", [asked] { return summarize(*asked, false); })
        ->add_flag("--json", asked->json, "As one JSON object");
    add("verify", "Reads everything, and says where it is damaged", [asked] { return summarize(*asked, true); })
        ->add_flag("--json", asked->json, "As one JSON object");
    CLI::App* const entries = add("entries", "The entries, a line each", [asked] {
        return write_entries(*asked, std::cout, asked->json, false);
    });
    entries->add_flag("--json", asked->json, "A JSON object each");
    ranged(entries);
    CLI::App* const exported = add("export", "The entries with their payloads, as a JSON object each",
                                   [asked] { return export_entries(*asked); });
    exported->add_option("--to", asked->to, "The file that is written")->required()->type_name("FILE");
    ranged(exported);
    add("adopt", "This folder was moved here, and is the only one of its kind", [asked] { return adopt(*asked); });
    return [command, action] { return *command ? (*action)() : -1; };
}

}  // namespace lockstep::cli
