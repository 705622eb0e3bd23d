// What a transport brings along to be put through the contract suite.
//
// To plug one in: write a World for it, and in a source file of its own
//     INSTANTIATE_TEST_SUITE_P(name, Contract, testing::Values(Kind{"name", make_world}), kind_name);
// then link that with `contract_suite` (see CMakeLists.txt).
#pragma once

#include "transport/fabric.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>

namespace lockstep::transport::contract {

// The ids that every member of a world knows as its cluster.
inline constexpr std::uint8_t kMembers = 3;

struct MemberOptions {
    ReplicaId id;
    Incarnation incarnation{1};
    std::uint64_t cluster_id = 7;
    std::uint64_t ring_bytes = std::uint64_t{1} << 20;
};

// Replicas' fabrics that can reach each other. The tests drive all of them from one thread: a fabric that is not
// polled is a replica whose protocol thread is stopped.
class World {
 public:
    virtual ~World() = default;
    // Opens the fabric of a member that is not there, and tells the others and it where to find each other.
    virtual Fabric& start(const MemberOptions& options) = 0;
    // Ends a member as if its process had been killed. Not the place to be polite.
    virtual void kill(ReplicaId member) = 0;
};

struct Kind {
    std::string name;
    std::function<std::unique_ptr<World>()> make;
    // Why this transport cannot be tested on this machine; empty if it can. None: it always can.
    std::function<std::string()> why_not{};
    friend std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
};

}  // namespace lockstep::transport::contract
