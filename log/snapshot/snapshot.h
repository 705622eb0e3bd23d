// What a snapshot is of, and how a complete one is named.
#pragma once

#include "log/entry.h"

#include <lockstep/types.h>

#include <cstdint>
#include <string>

namespace lockstep::log {

// What stands at the head of a snapshot's file. Nothing in it is of one replica: the same file serves all.
struct SnapshotMeta {
    std::uint64_t cluster_id = 0;
    std::uint64_t genesis = 0;
    std::uint64_t ring_bytes = 0;
    Point at;            // of the last entry that the state holds; what comes next depends on no more
    std::string config;  // who votes there, as the protocol writes it: at most kMaxConfigBytes

    static constexpr std::size_t kMaxConfigBytes = 512;
    friend bool operator==(const SnapshotMeta&, const SnapshotMeta&) = default;
};

// Names a complete snapshot's file by what is in it: equal names, equal bytes.
struct SnapshotName {
    Point at;
    std::uint64_t bytes = 0;   // of the whole file
    std::uint64_t digest = 0;  // XXH3-64 over all of it but the digest's own place

    friend bool operator==(const SnapshotName&, const SnapshotName&) = default;
};

}  // namespace lockstep::log
