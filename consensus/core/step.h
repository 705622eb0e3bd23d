// What goes into the core and what comes out of it, as data.
#pragma once

#include "consensus/core/message.h"
#include "log/check.h"
#include "log/entry.h"
#include "transport/types.h"

#include <lockstep/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

namespace lockstep::core {

using transport::LaneAddress;
using transport::LaneId;
using transport::ReadId;

// The two clocks, as they stand when an event is handed in.
struct Now {
    std::uint64_t monotonic_ns = 0;  // never goes back; its zero means nothing
    std::uint64_t wall_ns = 0;       // since the Unix epoch; may jump
};

// -- In ------------------------------------------------------------------------------------------------------------

namespace event {

struct Tick {};  // time has passed; also starts a fresh core

struct PeerUp {
    ReplicaId peer;
    Incarnation incarnation;
};
struct PeerDown {
    ReplicaId peer;
    bool suspect_dead = false;  // its process likely ended: a suspicion at once
};
struct Received {
    ReplicaId from;
    Incarnation incarnation;
    Message message;
};
struct Landed {
    LaneId lane;
    std::uint64_t count = 0;  // writes and probes of the lane, from its start
};
struct LaneBroken {
    LaneId lane;
};
struct BoardRead {
    ReplicaId peer;
    transport::Board board;  // intact
};
struct RingRead {
    ReadId read;
    bool ok = false;
};
struct Reported {
    ReplicaId peer;
    transport::Report report;
};
// The own ring may hold more than before; bytes at and past `limit` may be changing.
struct Look {
    Position limit;
};
// Outcomes of effects.
struct Fenced {
    std::uint64_t serial = 0;
};
struct IncomingOpened {
    std::uint64_t serial = 0;
    std::optional<LaneAddress> address;  // none: the fabric could not
};
struct FormationKept {
    std::uint64_t genesis = 0;
};
struct Applied {
    log::Point to;
};
// The promise that was asked for with this serial is on disk.
struct PromiseKept {
    std::uint64_t serial = 0;
};
// The log of that generation is on disk up to `to`.
struct LogKept {
    std::uint64_t generation = 0;
    log::Point to;
    Index committed;  // a restart would know that this is
};

// Bytes of the log, committed where they came from, stand in the scratch ring from this replica's commit up to `upto`.
struct LogFetched {
    std::uint64_t serial = 0;
    Position upto;
};
// A snapshot of the log up to `at` is here, complete and verified.
struct SnapshotFetched {
    std::uint64_t serial = 0;
    log::Point at;
    Config config;
};

}  // namespace event

using Event = std::variant<event::Tick, event::PeerUp, event::PeerDown, event::Received, event::Landed,
                           event::LaneBroken, event::BoardRead, event::RingRead, event::Reported, event::Look,
                           event::Fenced, event::IncomingOpened, event::FormationKept, event::Applied,
                           event::PromiseKept, event::LogKept, event::LogFetched, event::SnapshotFetched>;

// -- Out: to be carried out in order ---------------------------------------------------------------------------------

namespace effect {

struct PostWrite {
    LaneId lane;
    Position at;
    std::uint64_t bytes = 0;
};
struct PostProbe {
    LaneId lane;
    std::uint64_t number = 0;
};
struct ConnectLane {
    LaneId lane;
    ReplicaId peer;
    LaneAddress address;
};
struct EndLane {
    LaneId lane;
};
// Revoke the incoming lane, then say Fenced with this serial.
struct Fence {
    std::uint64_t serial = 0;
};
// Open an incoming lane, then say IncomingOpened with this serial.
struct OpenIncoming {
    std::uint64_t serial = 0;
    ReplicaId holder;
    Incarnation incarnation;
    Position base;
};
struct ReadBoard {
    ReplicaId peer;
};
// Read the peer's ring into the scratch ring, at the same place.
struct ReadRing {
    ReadId read;
    ReplicaId peer;
    Position at;
    std::uint64_t bytes = 0;
};
struct WriteReport {
    ReplicaId peer;
    transport::Report report;
};
struct Publish {
    transport::Board board;  // not yet sealed
};
struct Send {
    ReplicaId peer;
    Message message;
};
// Keep for ever that this replica has taken part in forming; then, unless `formed`, say FormationKept.
struct KeepFormation {
    std::uint64_t genesis = 0;
    Config voters;
    bool formed = false;
};
// Put on disk that `ballot` is promised to that life of its candidate, then say PromiseKept (S1). A later one takes the
// place of those that are not said yet.
struct KeepPromise {
    std::uint64_t serial = 0;
    Ballot ballot;
    Incarnation candidate;
};
// Put the own ring's bytes of [from, upto) on disk, then say LogKept, perhaps of a part first. A new generation starts
// at a point that older ones have reached in the same log: behind it everything may differ from what they said.
struct KeepLog {
    std::uint64_t generation = 0;
    log::Point from;
    log::Point upto;
    Index committed;   // to be kept as well, with the bytes ...
    bool now = false;  // ... or even if there are none
    bool gather = false;  // the disk may wait with what is given, until there is more
};
// Get of `peer` what comes behind `from`: bytes of its log, into the scratch ring, up to `until` at most, then say
// LogFetched as they come; or else a newer snapshot, then say SnapshotFetched. Of the same serial again it says how far
// this replica has come; another serial begins anew.
struct Fetch {
    std::uint64_t serial = 0;
    ReplicaId peer;
    log::Point from;
    Position until;
};
// Nothing more of that: the scratch ring is not written any more.
struct EndFetch {};
// Make the state that of the snapshot that was fetched, and let the log start anew behind it.
struct InstallSnapshot {
    log::Point at;
};
// Every proposal that was appended and is not applied ends as unknown.
struct ProposalsLost {};
// Reads with tickets up to `through` may be answered now.
struct ReadsReady {
    std::uint64_t through = 0;
};
// Reads that are not ready will not become so; they may be asked again, of the leader.
struct ReadsLost {};

}  // namespace effect

using Effect = std::variant<effect::PostWrite, effect::PostProbe, effect::ConnectLane, effect::EndLane, effect::Fence,
                            effect::OpenIncoming, effect::ReadBoard, effect::ReadRing, effect::WriteReport,
                            effect::Publish, effect::Send, effect::KeepFormation, effect::KeepPromise, effect::KeepLog,
                            effect::Fetch, effect::EndFetch, effect::InstallSnapshot, effect::ProposalsLost,
                            effect::ReadsReady, effect::ReadsLost>;

// What one step wants done. Reused from step to step; never allocates.
class Effects {
 public:
    // No step wants more: every kind goes to each peer a bounded number of times.
    static constexpr std::size_t kMax = 32 * kMaxReplicas;

    void push(Effect effect) {
        LOCKSTEP_CHECK_OP(count_, <, kMax);
        effects_[count_++] = std::move(effect);
    }
    std::span<const Effect> all() const { return {effects_.data(), count_}; }
    bool empty() const { return count_ == 0; }
    void clear() { count_ = 0; }

 private:
    std::array<Effect, kMax> effects_;
    std::size_t count_ = 0;
};

}  // namespace lockstep::core
