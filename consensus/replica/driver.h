// Carries out what the core wants, over a fabric, and tells it what happened. The same driver runs over every
// transport and in the simulator: it has no thread and no clock of its own.
#pragma once

#include "consensus/core/core.h"
#include "consensus/replica/applier.h"
#include "consensus/replica/catch_up.h"
#include "consensus/replica/request_queue.h"
#include "consensus/replica/storage.h"
#include "transport/fabric.h"

#include <lockstep/replica.h>
#include <lockstep/state_machine.h>

#include <boost/circular_buffer.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::replica {

class Clock {
 public:
    virtual ~Clock() = default;
    virtual core::Now now() = 0;
};

// Where a replica keeps that it has taken part in forming a cluster, so that it never does so again (S7).
class FormationStore {
 public:
    virtual ~FormationStore() = default;
    // Blocks until it is kept. An error stops the replica.
    virtual Result<void> keep(std::uint64_t genesis, const core::Config& voters, bool formed) = 0;
};

// Not thread-safe, but for the queue that it is given: all calls come from the protocol thread.
class Driver {
 public:
    // All references must outlive the driver. `scratch` is memory as large as the ring. There is a `storage` unless the
    // log is kept in memory only. `recovered` is for a replica that comes back with its disk: the fabric's ring is
    // filled and the state machine stands as that says. `wal` is the log on disk, to be read for others: there is one
    // if there is a `storage`.
    struct Parts {
        std::uint64_t cluster_id = 0;
        StateMachine& state_machine;
        RequestQueue& queue;
        Clock& clock;
        FormationStore& formation;
        SnapshotStore& snapshots;
        Storage* storage = nullptr;
        LogSource* wal = nullptr;
        const core::Recovered* recovered = nullptr;
    };
    Driver(const core::CoreOptions& options, const SnapshotTriggers& triggers, transport::Fabric& fabric,
           std::span<std::byte> scratch, const Parts& parts);

    // One turn of the loop: waits for up to `wait` for something to do, then does it. An error stops the replica
    // for good: call `stop` then.
    Result<void> turn(std::chrono::nanoseconds wait);
    // How long the next turn may wait.
    std::chrono::nanoseconds patience();
    // For a callback that hears of an applied proposal: takes `done` and appends `command` to the log at once, without
    // the queue's lock and copies. False if now is not such a moment, or there is no room: then it is for the queue.
    bool propose_at_once(BytesView command, Replica::Done& done);
    // Protocol thread. `done` hears of the newest snapshot's index once it is durable, or why there is none.
    void take_snapshot(CatchUp::Taken done) { catch_up_.take_snapshot(std::move(done)); }
    // Fences the own ring, then ends every open proposal as unknown and what is queued as rejected (S13, S17).
    void stop();

    const core::Core& core() const { return core_; }
    // Proposals in the log, and reads, that are not answered: at most what the ring holds, and what the queue does.
    std::size_t waiting_proposals() const { return applier_.waiting(); }
    std::size_t waiting_reads() const { return reads_.size(); }
    // Fills in all but what the replica around this knows better.
    Status status() const;

 private:
    void take(core::Now now, const transport::Event& event);
    void step(core::Now now, const core::Event& event);
    void carry_out();
    void carry_out(const core::effect::PostWrite& effect);
    void carry_out(const core::effect::PostProbe& effect);
    void carry_out(const core::effect::ConnectLane& effect);
    void carry_out(const core::effect::EndLane& effect);
    void carry_out(const core::effect::Fence& effect);
    void carry_out(const core::effect::OpenIncoming& effect);
    void carry_out(const core::effect::ReadBoard& effect);
    void carry_out(const core::effect::ReadRing& effect);
    void carry_out(const core::effect::WriteReport& effect);
    void carry_out(const core::effect::Publish& effect);
    void carry_out(const core::effect::Send& effect);
    void carry_out(const core::effect::KeepFormation& effect);
    void carry_out(const core::effect::KeepPromise& effect);
    void carry_out(const core::effect::KeepLog& effect);
    void carry_out(const core::effect::Fetch& effect);
    void carry_out(const core::effect::EndFetch& effect);
    void carry_out(const core::effect::InstallSnapshot& effect);
    void carry_out(const core::effect::ProposalsLost& effect);
    void carry_out(const core::effect::ReadsReady& effect);
    void carry_out(const core::effect::ReadsLost& effect);
    void take_kept();
    void take_message(core::Now now, const transport::Event& event);
    void catch_up();
    void apply();
    void take_requests();
    void reject(Replica::Done& done, Reason reason) const;
    std::string lane_text(const core::Lane& lane) const;
    std::string missing_text() const;
    std::string loss_text() const;

    transport::Fabric& fabric_;
    RequestQueue& queue_;
    Clock& clock_;
    FormationStore& store_;
    Storage* const storage_;
    bool lost_;  // the disk still says that something is lost
    std::optional<Index> made_up_at_;  // the commit at which that was made up for
    const core::CoreOptions options_;
    log::Ring scratch_;
    core::Core core_;
    Applier applier_;
    CatchUp catch_up_;

    struct Read {
        std::uint64_t ticket = 0;
        Replica::Done done;
    };
    boost::circular_buffer<Read> reads_;  // no more than the queue takes: beyond that the answer is "busy" (S17)

    std::vector<transport::Event> events_;
    core::Effects effects_;
    std::vector<core::Event> outcomes_;  // of effects, for the core
    std::vector<core::Event> kept_;      // outcomes of the storage
    std::vector<core::Event> fetched_;   // what catching up has for the core
    std::vector<std::byte> encoded_;
    core::Now now_;                      // of this turn
    bool takes_at_once_ = false;         // callbacks of applied proposals run, and nothing older waits in the queue
    bool more_to_post_ = false;
    bool waits_for_room_ = false;
    Result<void> failure_;
    std::uint64_t entries_committed_ = 0;
    Index snapshot_;                     // the newest, and when it was complete
    std::uint64_t snapshot_ns_ = 0;
};

}  // namespace lockstep::replica
