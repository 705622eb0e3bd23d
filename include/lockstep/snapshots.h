// The snapshots in a replica's data folder, for people and tools: what they are of, and whether they are whole.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

// The file of a complete snapshot. Where its head is damaged, all behind `bytes` is 0.
struct SnapshotFile {
    std::string name;
    std::uint64_t bytes = 0;        // of the file
    std::uint64_t cluster_id = 0;
    std::uint64_t ring_bytes = 0;
    Index index;                    // of the last entry that the state holds
    Position position;              // of the stream, behind that entry
    Ballot ballot;                  // of that entry
    std::uint64_t timestamp_ns = 0;
    std::uint64_t state_bytes = 0;
    std::string damage;             // the part, its byte, what is the matter; empty: none was found
};

struct ReadSnapshotsOptions {
    bool verify = false;  // reads all of each; without, its head and its end
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // bytes of all files; now and then
};

// The complete snapshots in a data folder (or in its folder `snapshots`), the oldest first; changes nothing. Any
// thread; blocks for as long as the disk takes. Damage is found, not an error. A replica may run on the folder
// meanwhile; what it removes is left out. Errors: no such folder; a read that fails.
Result<std::vector<SnapshotFile>> read_snapshots(const std::string& folder, const ReadSnapshotsOptions& options = {});

}  // namespace lockstep
