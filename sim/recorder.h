// A state machine for the simulator's checkers, around the one under test.
#pragma once

#include "sim/history.h"
#include "transport/sim/network.h"

#include <lockstep/sim.h>
#include <lockstep/state_machine.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::sim {

// Stands around the service under test, tells the history what was applied, and keeps it where nobody else does: then
// an entry is answered with its command. A service without snapshots gets one here, by what was applied to it.
class Recorder final : public StateMachine {
 public:
    // `renew` makes the service anew, in its first state.
    Recorder(History& history, const transport::sim::Network& network, ReplicaId id, Incarnation incarnation,
             Service* service, std::function<Service*()> renew)
        : history_(history),
          network_(network),
          id_(id),
          incarnation_(incarnation),
          service_(service),
          renew_(std::move(renew)) {}
    void apply(std::span<const Entry> batch, Replies& replies) override;
    std::unique_ptr<SnapshotView> snapshot() override;
    Result<void> restore(SnapshotSource& source) override;
    const std::map<Index, std::string>& commands() const { return commands_; }
    std::uint64_t batches() const { return batches_; }

 private:
    History& history_;
    const transport::sim::Network& network_;
    ReplicaId id_;
    Incarnation incarnation_;
    Service* service_;
    const std::function<Service*()> renew_;
    std::uint64_t batches_ = 0;
    Index applied_;  // the newest command's
    std::map<Index, std::string> commands_;
    struct Command {
        Index index;
        Ballot ballot;
        std::uint64_t timestamp_ns = 0;
        std::vector<std::byte> bytes;
    };
    std::vector<Command> given_;  // to a service
};

}  // namespace lockstep::sim
