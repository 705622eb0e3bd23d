// The fabric: what a transport gives the protocol. One interface; implementations in tcp/, rdma/ and sim/.
//
// Each replica publishes memory for the others: its *ring* (written by the holder of its one incoming lane), its
// *board* (read by all) and one *report slot* per peer (written by that peer only). The promises F1 to F9 that every
// implementation keeps are written at the calls that they belong to; docs/transport.md discusses them, and the
// contract suite in tests/contract checks them.
//
// Threads: a Fabric is used by one thread, its replica's protocol thread, but for `wake`. What peers do to the
// published memory goes on without that thread: a write lands, a board or a ring is read, while it sleeps, works or is
// stopped. F8: a fault of one peer disturbs no other.
#pragma once

#include "transport/types.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport {

enum class EventKind : std::uint8_t {
    peer_up,      // `peer` can be reached: control messages, reads and reports go; `incarnation` is its life
    peer_down,    // it cannot (any more); `suspect_dead`: its end was closed or reset, so its process likely ended
    landed,       // all writes and probes of `lane` up to the `count`th (from 1) have landed (F1, F2)
    lane_broken,  // `lane` takes no more (F5); what had not landed before is unknown (F4); source bytes are free (F9)
    board,        // answer to read_board, in `board`; whether it is intact is for the caller to check (F6)
    ring_read,    // answer to read_ring `read`; `ok` false: nothing is known of the destination's bytes
    report,       // `peer` has written `report`; older ones that were not yet seen may be left out
    message,      // `peer` (of life `incarnation`) has sent `bytes`
};

struct Event {
    EventKind kind = EventKind::peer_up;
    ReplicaId peer;
    Incarnation incarnation;
    bool suspect_dead = false;
    bool ok = false;
    LaneId lane;
    std::uint64_t count = 0;
    ReadId read;
    Board board;
    Report report;
    std::span<const std::byte> bytes;  // owned by the fabric, valid until the next `poll`
    std::string why;                   // for a person: peer_down, lane_broken; else empty
};

class Fabric {
 public:
    virtual ~Fabric() = default;

    // -- This replica's memory ---------------------------------------------------------------------------------------

    // The ring, `ring_bytes` long, page aligned, zeroed; followed by the probe line. Lives as long as the fabric.
    virtual std::span<std::byte> ring() = 0;
    // Puts a new board (sealed by the caller) where peers read it. Does not block.
    virtual void publish(const Board& board) = 0;

    // Opens the one incoming lane, for `holder` (that life of it only), which may write from `base` on, in rising
    // order, and probe. Requires that there is none. The address works once, for one connection. Does not block.
    virtual Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) = 0;
    // The fence. F3: once this has returned, no byte that came or comes through the incoming lane changes the ring or
    // the probe line any more, ever: not late, not by a retry, not by a receive still pending in the kernel. Blocks
    // for no longer than the device or one copy takes. No effect if there is no incoming lane.
    virtual void revoke_incoming() = 0;
    // How far this replica may look into its own ring: bytes at and past this position may be changing right now.
    // A transport that cannot tell returns the largest position: the reader's checks decide anyway.
    virtual Position incoming_landed() const = 0;

    // -- Peers' memory -----------------------------------------------------------------------------------------------

    // Makes `lane` the right to write `peer`'s ring that `address` names, from `base` on. Writes may be posted at once.
    // That it cannot be reached, or is revoked, comes as `lane_broken`.
    virtual void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) = 0;
    // Posts the bytes of the own ring at [at, at + bytes) for the same place of the peer's ring. At most
    // kMaxTransferBytes; does not cross the ring's end; `at` is at or past the end of the write posted before.
    // F1: writes and probes of one lane land in the order posted, and `landed` comes in that order, counting both.
    // F2: landed bytes are in the peer's memory, seen by every scan that starts after a later fence.
    // F4: without `landed` they may be there wholly, partly or not at all, and may still arrive until the fence.
    // F9: the source bytes belong to the fabric until `landed`, `lane_broken`, or `end_lane` has returned.
    // False if the lane has no room or is broken: nothing was posted. Does not block.
    virtual bool write(LaneId lane, Position at, std::uint64_t bytes) = 0;
    // Posts a write of `number` to the probe line behind the peer's ring: counts as a write of the lane.
    virtual bool probe(LaneId lane, std::uint64_t number) = 0;
    // Sends on what `write` and `probe` have gathered: once per loop turn, for all lanes.
    virtual void flush() = 0;
    // Ends an outgoing lane: no event of it comes any more; the source bytes are free on return. What had not landed
    // is unknown. No effect on a lane that is not there.
    virtual void end_lane(LaneId lane) = 0;

    // Asks for the peer's board: a `board` event comes unless the peer goes down. One at a time per peer: a second
    // ask before the answer has no effect.
    virtual void read_board(ReplicaId peer) = 0;
    // Reads [at, at + bytes) of the peer's ring (not across its end, at most kMaxTransferBytes) into `into`, which
    // belongs to the fabric until the `ring_read` event, that comes in every case. F6: what arrives can be torn.
    virtual void read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) = 0;
    // Writes this replica's report slot at the peer. May be lost when the peer goes down; a newer one replaces it.
    virtual void write_report(ReplicaId peer, const Report& report) = 0;
    // F7: a control message can be lost, repeated and reordered, never altered; its sender is who the handshake said.
    // Without effect on a peer that is down.
    virtual void send(ReplicaId peer, std::span<const std::byte> message) = 0;

    // -- The loop ----------------------------------------------------------------------------------------------------

    // Waits up to `wait` for something to happen, then appends what did to `events` (whose old contents the caller
    // has cleared). Also returns early, perhaps with no event, when bytes landed in the ring or `wake` was called.
    virtual void poll(std::chrono::nanoseconds wait, std::vector<Event>& events) = 0;
    // Ends a running or the next `poll` early. Any thread; does not block.
    virtual void wake() = 0;
    // An eventfd of which a write ends a running or the next `poll` early, too; -1: there is none.
    virtual int wake_descriptor() const { return -1; }
    // Which way `peer` is reached, for status: "tcp", "rdma (device, GID)", or why it is not.
    virtual std::string path(ReplicaId peer) const = 0;
};

}  // namespace lockstep::transport
