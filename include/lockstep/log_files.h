// The log in a replica's data folder, for people and tools: what is in it, and whether it is whole.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

// A file of the log.
struct LogSegment {
    std::string name;
    std::uint64_t bytes = 0;    // of the file
    Position first{};           // of the stream, that it can hold
    Index first_index{};        // of the first entry that verified in it; 0: none did
    Index last_index{};
    std::uint64_t entries = 0;  // that verified, pads included
};

struct LogSummary {
    std::uint64_t cluster_id = 0;
    ReplicaId replica;
    Incarnation incarnation;
    Ballot promised;
    std::uint64_t ring_bytes = 0;
    Index base_index;           // the log begins behind it
    Position base_position;
    Index last_index;           // the newest entry that verified
    Ballot last_ballot;
    Position end_position;
    Position floor_position;    // everything below was acknowledged as durable
    std::vector<LogSegment> segments;
    std::uint64_t entries = 0;
    std::uint64_t bytes_read = 0;
    // "none": whole, or with a torn tail, which is nothing. "suspect": the last write was torn, or rotted after it was
    // acknowledged. "corrupt": rot in what was acknowledged.
    std::string damage = "none";
    std::string where;          // of damage: the file, the byte, what was expected; else empty
};

// An entry that verified. `payload` is valid during the call that it is passed to.
struct LogEntry {
    Index index;
    Ballot ballot;
    Index commit;               // that its leader knew when it made it
    std::uint64_t timestamp_ns = 0;
    Position position;
    std::uint64_t checksum = 0;
    const char* kind = "";      // "command", "no-op", "config", "pad", "session"
    BytesView payload;
};

struct ReadLogCalls {
    std::function<void(const LogEntry&)> entry{};                                // for each, in order
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};   // bytes; now and then
};

// Reads and verifies all of the log in a data folder (or in its folder `log`); changes nothing. Any thread; blocks for
// as long as the disk takes, and needs as much memory as the replica's ring has. A replica should not run on the folder
// meanwhile: what it writes during the call can look torn. Errors: no log there, no readable hard state, a read that
// fails.
Result<LogSummary> read_log(const std::string& folder, const ReadLogCalls& calls = {});

// An operator's word that a data folder that was copied or moved is the only one of its kind left, in its newest state:
// the replica may start with it here. Blocks for the disk. Errors: a process uses the folder; the disk's.
Result<void> adopt_data_folder(const std::string& folder);

}  // namespace lockstep
