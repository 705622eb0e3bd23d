#include "tools/cli/status.h"

#include "tools/cli/output.h"
#include "tools/cli/replica_answer.h"
#include "tools/counter/address.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::cli {

namespace {

struct StatusAsked {
    std::vector<std::string> addresses;
    unsigned timeout_ms = 2000;
    bool json = false;
};

struct StatusRow {
    std::string address;
    Result<ReplicaAnswer> answer = Error("not asked");
};

// Of all that is asked. The leader is the one in the highest ballot: another may not know yet that it leads no more.
struct Overall {
    const ReplicaAnswer* leader = nullptr;
    std::size_t replicas = 0;  // of its cluster
    std::size_t follow = 0;    // of these, itself and those whose lane streams
    std::uint64_t committed = 0;

    bool serves() const { return leader != nullptr && follow >= replicas / 2 + 1; }
};

// All at once, so that several that do not answer take no longer than one.
std::vector<StatusRow> ask_all(const StatusAsked& asked) {
    std::vector<StatusRow> rows(asked.addresses.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].address = asked.addresses[i];
        threads.emplace_back([&row = rows[i], patience = std::chrono::milliseconds(asked.timeout_ms)] {
            row.answer = ask_replica(row.address, patience);
        });
    }
    threads.clear();
    return rows;
}

std::pair<std::uint64_t, std::uint64_t> ballot_of(const ReplicaAnswer& answer) {
    const std::string_view text = answer.ballot;
    std::pair<std::uint64_t, std::uint64_t> ballot;
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data(), end, ballot.first);
    if (error == std::errc{} && dot != end) std::from_chars(dot + 1, end, ballot.second);
    return ballot;
}

Overall sum_up(const std::vector<StatusRow>& rows) {
    Overall all;
    for (const StatusRow& row : rows) {
        if (!row.answer) continue;
        const ReplicaAnswer& answer = row.answer.value();
        all.committed = std::max(all.committed, answer.committed);
        if (answer.role == "leader" && (all.leader == nullptr || ballot_of(answer) > ballot_of(*all.leader)))
            all.leader = &answer;
    }
    if (all.leader == nullptr) return all;
    all.replicas = all.leader->peers.size() + 1;
    all.follow = 1 + static_cast<std::size_t>(std::ranges::count(all.leader->peers, "streaming", &PeerAnswer::lane));
    return all;
}

std::string verdict(const Overall& all) {
    if (all.leader == nullptr) return "no leader among those that answered";
    const std::string counts = std::to_string(all.follow) + " of " + std::to_string(all.replicas);
    return "r" + std::to_string(all.leader->id) + " leads, " + counts + " hold its log" +
           (all.serves() ? "" : ": no majority");
}

std::uint64_t lag_of(const Overall& all, const ReplicaAnswer& answer) {
    return all.committed - std::min(all.committed, answer.applied);
}

void write_text(const std::vector<StatusRow>& rows, const Overall& all) {
    std::size_t width = 7;
    for (const StatusRow& row : rows) width = std::max(width, row.address.size());
    const auto pad = [width](const std::string& address) { return address + std::string(width - address.size(), ' '); };
    std::cout << pad("address") << "  id    role       ballot       committed     applied     lag  durability\n";
    for (const StatusRow& row : rows) {
        if (!row.answer) {
            std::cout << pad(row.address) << "  does not answer: " << row.answer.error().message() << '\n';
            continue;
        }
        const ReplicaAnswer& answer = row.answer.value();
        char line[300];
        std::snprintf(line, sizeof line, "  r%-3llu  %-9s  %-8s  %12llu%12llu%8llu  %s",
                      static_cast<unsigned long long>(answer.id), answer.role.c_str(), answer.ballot.c_str(),
                      static_cast<unsigned long long>(answer.committed),
                      static_cast<unsigned long long>(answer.applied),
                      static_cast<unsigned long long>(lag_of(all, answer)), answer.durability.c_str());
        std::cout << pad(row.address) << line;
        if (answer.durability != "memory")
            std::cout << ", on disk up to " << answer.durable << " of " << answer.log_end;
        std::cout << '\n';
        if (!answer.note.empty()) std::cout << "    " << answer.note << '\n';
        for (const PeerAnswer& peer : answer.peers) {
            std::cout << "    r" << peer.id << ": " << (peer.connected ? "" : "not connected, ")
                      << (peer.votes ? "" : "learns, ") << peer.path;
            if (answer.role == "leader") std::cout << "; " << peer.lane;
            std::cout << '\n';
        }
    }
    std::cout << verdict(all) << '\n';
}

void write_json(const ReplicaAnswer& answer, const Overall& all) {
    std::cout << "\"id\": " << answer.id << ", \"role\": " << quoted(answer.role) << ", \"leader\": ";
    if (answer.leader == 0) std::cout << "null";
    else std::cout << answer.leader;
    std::cout << ", \"ballot\": " << quoted(answer.ballot) << ", \"committed\": " << answer.committed
              << ", \"applied\": " << answer.applied << ", \"lag\": " << lag_of(all, answer)
              << ", \"log_end\": " << answer.log_end << ", \"durability\": " << quoted(answer.durability)
              << ", \"durable\": " << answer.durable << ", \"snapshot\": " << answer.snapshot
              << ", \"note\": " << quoted(answer.note) << ", \"peers\": [";
    const char* separator = "";
    for (const PeerAnswer& peer : answer.peers) {
        std::cout << separator << "{\"id\": " << peer.id << ", \"connected\": " << (peer.connected ? "true" : "false")
                  << ", \"votes\": " << (peer.votes ? "true" : "false")
                  << ", \"path\": " << quoted(peer.path) << ", \"lane\": " << quoted(peer.lane)
                  << ", \"landed\": " << peer.landed << ", \"consumed\": " << peer.consumed << "}";
        separator = ", ";
    }
    std::cout << "]";
}

void write_json(const std::vector<StatusRow>& rows, const Overall& all) {
    std::cout << "{\"leader\": " << (all.leader != nullptr ? std::to_string(all.leader->id) : "null")
              << ", \"serves\": " << (all.serves() ? "true" : "false") << ", \"replicas\": [";
    const char* separator = "";
    for (const StatusRow& row : rows) {
        std::cout << separator << "{\"address\": " << quoted(row.address)
                  << ", \"answered\": " << (row.answer ? "true, " : "false, ");
        if (row.answer) write_json(row.answer.value(), all);
        else std::cout << "\"why\": " << quoted(row.answer.error().message());
        std::cout << "}";
        separator = ", ";
    }
    std::cout << "]}\n";
}

// 0, or 1 where nobody serves.
int show_status(const StatusAsked& asked) {
    for (const std::string& address : asked.addresses)
        if (const auto parsed = counter::parse_address(address); !parsed) return complain(parsed.error());
    const std::vector<StatusRow> rows = ask_all(asked);
    const Overall all = sum_up(rows);
    if (asked.json) write_json(rows, all);
    else write_text(rows, all);
    return all.serves() ? 0 : 1;
}

}  // namespace

std::function<int()> add_status_command(CLI::App& app) {
    CLI::App* const command = app.add_subcommand("status", "How running replicas of lockstep-counter are, by their own "
                                                           "word");
    auto asked = std::make_shared<StatusAsked>();
    command->add_option("ADDRESS", asked->addresses, "Clients' port of a replica; name all of the cluster")
        ->required()
        ->type_name("HOST:PORT ...");
    command->add_option("--timeout-ms", asked->timeout_ms, "How long one may owe its answer")
        ->check(CLI::Range(10, 600'000))
        ->capture_default_str();
    command->add_flag("--json", asked->json, "As one JSON object");
    command->footer("Ends with 0 if one of them leads and a majority of its cluster holds its log, with 1 if not, with "
                    "2 if it cannot ask.");
    return [command, asked] { return *command ? show_status(*asked) : -1; };
}

}  // namespace lockstep::cli
