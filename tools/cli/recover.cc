#include "tools/cli/recover.h"

#include "tools/cli/output.h"

#include <lockstep/survivor.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::cli {

namespace {

struct RecoverAsked {
    std::string folder;
    std::optional<std::uint64_t> loss_behind;
    bool json = false;
};

void write_json(const Survivor& survivor) {
    std::cout << "{\"cluster_id\": " << survivor.cluster_id << ", \"replica\": " << unsigned{survivor.replica.value}
              << ", \"incarnation\": \"" << to_string(survivor.incarnation) << "\", \"last_ballot\": \""
              << to_string(survivor.last_ballot) << "\", \"last_index\": " << survivor.last_index.value
              << ", \"committed\": " << survivor.committed.value << ", \"damage\": " << quoted(survivor.damage)
              << ", \"voters\": [";
    const char* separator = "";
    for (const ReplicaId voter : survivor.voters) {
        std::cout << separator << unsigned{voter.value};
        separator = ", ";
    }
    std::cout << "]}\n";
}

// What it holds, and what it would mean to go on with it alone.
void write_text(const RecoverAsked& asked, const Survivor& survivor) {
    const std::string self = to_string(survivor.replica);
    std::cout << "replica " << self << " of cluster " << survivor.cluster_id << " holds its log to ballot "
              << to_string(survivor.last_ballot) << ", index " << survivor.last_index.value
              << "; committed, as far as it knows, to index " << survivor.committed.value << '\n';
    if (survivor.damage != "none") std::cout << "its log is " << survivor.damage << ": see 'lockstep log verify'\n";
    std::cout << "\nIf a majority of the voters is alive, or its disks are, start those: nothing is lost then.\n"
                 "If it is not, the cluster can go on with what one survivor holds. Of several take the one with the\n"
                 "highest ballot, then index. What the others had acknowledged behind index "
              << survivor.last_index.value << " is lost.\n"
                 "To make " << self << " the only voter:\n\n"
                 "    lockstep recover " << asked.folder << " --accept-loss-behind " << survivor.last_index.value
              << "\n\nThen start it, and each of the others with an empty data folder and --join. Never start any of\n"
                 "the other voters with its old data folder again.\n";
}

int recover(const RecoverAsked& asked) {
    if (!asked.loss_behind) {
        const auto survivor = read_survivor(asked.folder, progress_shown());
        if (!survivor) return complain(survivor.error());
        if (asked.json) write_json(survivor.value());
        else write_text(asked, survivor.value());
        return 0;
    }
    const auto done = make_only_voter(asked.folder, Index{*asked.loss_behind}, progress_shown());
    if (!done) return complain(done.error());
    std::cout << "done: it is the only voter. Start it, and each of the others with an empty data folder and --join.\n";
    return 0;
}

}  // namespace

std::function<int()> add_recover_command(CLI::App& app) {
    CLI::App* const command = app.add_subcommand(
        "recover", "When a majority of the voters is lost: what a survivor holds, and going on with it alone");
    command->footer("Without --accept-loss-behind it changes nothing. Ends with 2 if it cannot do what is asked.");
    auto asked = std::make_shared<RecoverAsked>();
    command->add_option("FOLDER", asked->folder, "The data_folder of the survivor's config; it must not run")
        ->required();
    CLI::Option* const loss = command->add_option(
        "--accept-loss-behind", asked->loss_behind,
        "Make it the only voter, and lose what others had acknowledged behind this index, the last one in its log");
    loss->type_name("INDEX");
    command->add_flag("--json", asked->json, "What it holds, as one JSON object")->excludes(loss);
    return [command, asked] { return *command ? recover(*asked) : -1; };
}

}  // namespace lockstep::cli
