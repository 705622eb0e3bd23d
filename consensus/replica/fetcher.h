// The side of catching up that asks: carries out the core's Fetch.
#pragma once

#include "consensus/core/step.h"
#include "consensus/replica/snapshot_store.h"
#include "consensus/replica/transfer.h"
#include "log/ring.h"

#include <lockstep/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::replica {

// Not thread-safe: the protocol thread calls. One piece is asked for at a time: the next when it is there, and, where
// it is one of a snapshot, written.
class Fetcher {
 public:
    // `scratch` is the core's. An answer that does not come within `retry_ns` is asked for again.
    Fetcher(const log::Ring& scratch, SnapshotStore& store, std::uint64_t retry_ns)
        : scratch_(scratch), store_(store), retry_ns_(retry_ns) {}

    void fetch(const core::effect::Fetch& fetch, std::uint64_t genesis);
    void end() { active_ = false; }
    // A piece from `from`. What the core has to hear of goes to `events`.
    void receive(std::uint64_t now_ns, ReplicaId from, const Transfer& piece, std::vector<core::Event>& events);
    // What has come of the pieces that were written.
    void take(std::uint64_t now_ns, const SnapshotOutcome& outcome, std::vector<core::Event>& events);
    // What is to be sent to peer() now; once.
    std::optional<Transfer> ask(std::uint64_t now_ns, std::vector<core::Event>& events);
    ReplicaId peer() const { return fetch_.peer; }

    bool active() const { return active_; }
    // How far it is, for a person.
    std::string text() const;

 private:
    void say_fetched(const log::SnapshotName& name, const log::SnapshotMeta& meta, std::vector<core::Event>& events);

    log::Ring scratch_;
    SnapshotStore& store_;
    const std::uint64_t retry_ns_;
    core::effect::Fetch fetch_;
    std::uint64_t genesis_ = 0;
    bool active_ = false;
    Position have_;                    // the scratch ring holds what comes behind the commit up to here
    bool log_is_bad_ = false;          // what came of the log did not verify: then only a snapshot helps
    std::uint64_t ask_again_ns_ = 0;
    bool writing_ = false;             // a piece of a snapshot ...
    bool last_piece_ = false;          // ... the last one
    std::optional<log::SnapshotName> bad_;  // came as a whole, and was not what its name says
    std::string trouble_;              // why the last snapshot did not get here
};

}  // namespace lockstep::replica
