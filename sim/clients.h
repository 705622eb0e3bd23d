// Those who ask a simulated cluster for something.
#pragma once

#include <lockstep/types.h>

#include <cstddef>
#include <cstdint>

namespace lockstep::sim {

class Clients {
 public:
    virtual ~Clients() = default;
    // A client of replica `to` sends a command that changes something; `key` and `bytes` are for who can use them.
    virtual void add(ReplicaId to, std::uint64_t key, std::size_t bytes) = 0;
    virtual void put(ReplicaId to, std::uint64_t key, std::size_t bytes) = 0;
    // ... reads, linearizably.
    virtual void get(ReplicaId to, std::uint64_t key) = 0;
    // At the end: throws Violation where what they saw cannot be.
    virtual void check() const = 0;
    // What could not be checked in reasonable time.
    virtual std::size_t undecided() const { return 0; }
};

}  // namespace lockstep::sim
