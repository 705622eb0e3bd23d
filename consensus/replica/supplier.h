// The side of catching up that answers.
#pragma once

#include "consensus/core/core.h"
#include "consensus/replica/log_source.h"
#include "consensus/replica/snapshot_store.h"
#include "consensus/replica/transfer.h"

#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::replica {

// Not thread-safe: the protocol thread calls. Any replica answers, leader or not: what it hands out is committed.
class Supplier {
 public:
    using Send = std::function<void(ReplicaId peer, const Transfer& transfer)>;

    // Who has not asked for `hold_ns` needs nothing any more.
    Supplier(SnapshotStore& store, LogSource& source, std::uint64_t hold_ns, Send send)
        : store_(store), source_(source), hold_ns_(hold_ns), send_(std::move(send)) {}

    void receive(std::uint64_t now_ns, ReplicaId from, const Transfer& ask, const core::Core& core);
    // What has been read.
    void take(const SnapshotOutcome& piece, const core::Core& core);
    void take_log(const core::Core& core);
    void send(ReplicaId peer, const Transfer& transfer) const { send_(peer, transfer); }

    // Forgets who has not asked for long, and who has a lane from here, and so needs nothing else any more.
    void forget_served(std::uint64_t now_ns, const core::Core& core);
    // Somebody is served: what it needs is to be kept.
    bool serves() const { return !askers_.empty(); }
    // The lowest position that anyone who is served needs; only while somebody is.
    Position needed() const;
    // Somebody needs a snapshot newer than those there are.
    bool wants_snapshot() const { return wants_snapshot_; }
    void has_snapshot(const log::SnapshotName& name) {
        wants_snapshot_ = false;
        if (bad_ == name) bad_.reset();
    }
    // The newest one was handed out, and was not what its name says.
    bool has_bad_snapshot() const { return bad_.has_value(); }

 private:
    struct Asker {
        ReplicaId id;
        std::uint64_t until_ns = 0;
        Position needs;
    };

    void take_anew(const log::SnapshotName& name, const std::string& why);

    SnapshotStore& store_;
    LogSource& source_;
    const std::uint64_t hold_ns_;
    const Send send_;
    std::vector<Asker> askers_;  // each id once; most often none
    bool wants_snapshot_ = false;
    std::optional<log::SnapshotName> bad_;
    std::vector<LogBytes> read_;
};

}  // namespace lockstep::replica
