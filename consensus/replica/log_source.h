// Where the log is to be had from that the ring no longer holds.
#pragma once

#include <lockstep/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::replica {

struct LogBytes {
    ReplicaId peer;
    Position at;
    std::vector<std::byte> bytes;  // none: they are not to be had any more
};

// Not thread-safe: the protocol thread calls, and no call waits for a disk.
class LogSource {
 public:
    virtual ~LogSource() = default;
    // What lies below is not to be had; beyond every position where there is nothing.
    virtual Position begin() const = 0;
    // Asks for committed bytes of one lap, for `peer`.
    virtual void read(ReplicaId peer, Position at, std::uint64_t bytes) = 0;
    // What has been read since.
    virtual void take(std::vector<LogBytes>& read) = 0;
};

}  // namespace lockstep::replica
