// Clients of a simulated cluster: they add to counters, write and read registers, and hold what they saw against the
// rules: every value must be linearizable, whatever became of operations whose outcome is unknown.
#pragma once

#include "sim/clients.h"
#include "sim/cluster.h"
#include "sim/linearizability.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace lockstep::sim {

// Counters and registers. A command is text: "NUMBER add|put VALUE", and blanks behind it.
class KeyValue final : public Service {
 public:
    void apply(std::span<const Entry> batch, Replies& replies) override;
    std::uint64_t digest() const override { return digest_; }
    std::uint64_t value(std::uint64_t which) const;

 private:
    std::map<std::uint64_t, std::uint64_t> values_;
    std::uint64_t digest_ = 0;
};

class Workload final : public Clients {
 public:
    explicit Workload(Cluster& cluster) : cluster_(cluster) {}

    // The command is made `bytes` long.
    void add(ReplicaId to, std::uint64_t key, std::size_t bytes) override {
        write(Operation::Kind::add, to, key, bytes);
    }
    void put(ReplicaId to, std::uint64_t key, std::size_t bytes) override {
        write(Operation::Kind::put, to, key, bytes);
    }
    void get(ReplicaId to, std::uint64_t key) override;

    // Throws Violation if some value's operations have no explanation.
    void check() const override;
    // Values of which the check could not be finished.
    std::size_t undecided() const override { return undecided_; }

    // What a command of this number adds.
    static std::uint64_t delta(std::uint64_t number);

 private:
    // A key's value is left alone once too many outcomes are unknown, and a fresh one used: deciding them all takes
    // time that doubles with each.
    static constexpr std::size_t kMostUnknown = 8;
    struct Value {
        std::vector<Operation> operations;
        std::size_t unknown = 0;
    };
    using OperationRef = std::pair<std::uint64_t, std::size_t>;  // of which value, which
    OperationRef begin(Operation::Kind kind, std::uint64_t key, std::uint64_t argument);
    void end(OperationRef which, Fate fate, std::uint64_t result);
    void write(Operation::Kind kind, ReplicaId to, std::uint64_t key, std::size_t bytes);

    Cluster& cluster_;
    std::map<std::uint64_t, std::uint64_t> value_of_;  // by key
    std::uint64_t fresh_value_ = 0;
    std::map<std::uint64_t, Value> values_;
    std::uint64_t moment_ = 0;
    mutable std::size_t undecided_ = 0;
};

}  // namespace lockstep::sim
