// The log in production: a lockstep::Replica.
#pragma once

#include "tools/counter/log.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <memory>

namespace lockstep::counter {

class ReplicaLog final : public Log {
 public:
    // Before any other member: as Replica::open.
    Result<void> open(const Options& options, StateMachine& machine);
    void propose(BytesView command, Done done) override { replica_->propose(command, std::move(done)); }
    void read(Done done) override { replica_->read(std::move(done)); }
    void take_snapshot(Replica::SnapshotTaken done) override { replica_->take_snapshot(std::move(done)); }
    LogStatus status() const override;
    void stop() { replica_->stop(); }

 private:
    std::unique_ptr<Replica> replica_;
};

}  // namespace lockstep::counter
