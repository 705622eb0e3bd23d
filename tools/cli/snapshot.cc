#include "tools/cli/snapshot.h"

#include "tools/cli/output.h"

#include <lockstep/snapshots.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::cli {

namespace {

struct Listing {
    std::string folder;
    bool json = false;
};

void write_json(const std::vector<SnapshotFile>& files, bool verified) {
    std::cout << "{\"verified\": " << (verified ? "true" : "false") << ", \"snapshots\": [";
    const char* separator = "";
    for (const SnapshotFile& file : files) {
        std::cout << separator << "{\"name\": " << quoted(file.name) << ", \"bytes\": " << file.bytes
                  << ", \"cluster_id\": " << file.cluster_id << ", \"ring_bytes\": " << file.ring_bytes
                  << ", \"index\": " << file.index.value << ", \"position\": " << file.position.value
                  << ", \"ballot\": \"" << to_string(file.ballot) << "\", \"timestamp_ns\": " << file.timestamp_ns
                  << ", \"state_bytes\": " << file.state_bytes << ", \"damage\": " << quoted(file.damage) << "}";
        separator = ", ";
    }
    std::cout << "]}\n";
}

void write_text(const SnapshotFile& file, bool verified) {
    std::cout << file.name << "  ";
    if (!file.damage.empty()) std::cout << "damaged: " << file.damage << '\n';
    else std::cout << (verified ? "whole: " : "") << "index " << file.index.value << ", ballot "
                   << to_string(file.ballot) << ", position " << file.position.value << ", " << file.state_bytes
                   << " bytes of state\n";
}

// 0, or 1 where there is damage.
int show(const Listing& asked, bool verify) {
    ReadSnapshotsOptions options;
    options.verify = verify;
    if (verify) options.progress = progress_shown();
    const auto files = read_snapshots(asked.folder, options);
    if (!files) return complain(files.error());
    if (asked.json) write_json(files.value(), verify);
    else for (const SnapshotFile& file : files.value()) write_text(file, verify);
    if (files.value().empty() && !asked.json) std::cout << "no snapshot in " << asked.folder << '\n';
    const auto whole = [](const SnapshotFile& file) { return file.damage.empty(); };
    return std::ranges::all_of(files.value(), whole) ? 0 : 1;
}

}  // namespace

std::function<int()> add_snapshot_command(CLI::App& app) {
    CLI::App* const command = app.add_subcommand("snapshot", "The snapshots on a replica's disk, and whether they are "
                                                             "whole");
    command->require_subcommand(1);
    command->footer("Ends with 1 if one is damaged, with 2 if they cannot be read. Changes nothing.");
    auto asked = std::make_shared<Listing>();
    auto action = std::make_shared<std::function<int()>>();
    const auto add = [&](const char* name, const char* text, bool verify) {
        CLI::App* const sub = command->add_subcommand(name, text);
        sub->add_option("FOLDER", asked->folder, "The data_folder of the replica's config")->required();
        sub->add_flag("--json", asked->json, "As one JSON object");
        sub->callback([=] { *action = [=] { return show(*asked, verify); }; });
    };
    add("list", "What each is of, by its head and its end", false);
    add("verify", "Reads all of each, and says where one is damaged", true);
    return [command, action] { return *command ? (*action)() : -1; };
}

}  // namespace lockstep::cli
