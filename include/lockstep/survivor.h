// When a majority of the voters is lost: the operator's last resort.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

// A replica of durable mode that has ended, by its data folder.
struct Survivor {
    std::uint64_t cluster_id = 0;
    ReplicaId replica;
    Incarnation incarnation;
    Ballot last_ballot;              // of the log's last entry. Of several survivors the one with the highest (last
    Index last_index;                // ballot, last index) holds the most
    Index committed;                 // at least so far; what is behind it may have been acknowledged as well
    std::vector<ReplicaId> voters;   // by the newest config in its log; empty where that does not say
    std::string damage = "none";     // as LogSummary::damage
};

using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Reads and verifies all of the log; changes nothing. Any thread; blocks for as long as the disk takes, and needs as
// much memory as the replica's ring has. `progress`, where given, hears of bytes now and then. Errors: no log there,
// another process uses it, no readable hard state, a read that fails.
Result<Survivor> read_survivor(const std::string& data_folder, const ReadProgress& progress = {});

// Makes the replica of `data_folder` the only voter of its cluster, by a config entry at the end of its log: it leads
// by itself when it is started, with everything that its log holds, and the other members come in anew, with empty data
// folders and `join`. What the lost voters had acknowledged behind `last_index`, which must name the log's last entry,
// is lost: an operator who names it has looked. None of the other voters may be started with its old data folder ever
// again: where they are a majority, they would go on without this one. Any thread; blocks for the disk. Errors: as
// above; another index is named; the log is damaged; a write fails, after which the folder is as it was, or as asked.
Result<void> make_only_voter(const std::string& data_folder, Index last_index, const ReadProgress& progress = {});

}  // namespace lockstep
