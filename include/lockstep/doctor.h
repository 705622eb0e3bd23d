// What this machine can do for a replica, and what a person could change about it.
#pragma once

#include <lockstep/options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Finding {
    enum class Kind : std::uint8_t {
        fact,     // how things are
        good,     // as a replica wishes them
        problem,  // something does not work, or is slower than it could be; `remedy` says what to change
    };
    Kind kind = Kind::fact;
    std::string subject;  // "RDMA device rxe1", "memory lock", ...
    std::string text;
    std::string remedy;   // of a problem; else empty
};

// What is to be looked at.
struct Question {
    std::string address = "127.0.0.1";            // this replica's own, a name or an address
    std::vector<std::string> peers;               // of others: "host" or "host:port"
    std::uint64_t ring_bytes = Options{}.ring_bytes;
    std::string rdma_device{};                    // as in Options
    std::uint32_t rdma_port = 0;
    std::int32_t rdma_gid_index = -1;
};

// Looks at RDMA devices, their ports and addresses, and which a replica with that address would use; at the limit of
// locked memory and at huge pages; and which way each peer would be reached. Any thread. Blocks for look-ups of names
// and for the devices' answers; sends nothing to a peer and changes nothing.
std::vector<Finding> examine(const Question& question);

}  // namespace lockstep
