// All lanes of a replica over TCP: the one incoming, and the outgoing ones. Protocol thread, but for the door.
#pragma once

#include "transport/fabric.h"
#include "transport/link/station.h"
#include "transport/link/token.h"
#include "transport/tcp/door.h"
#include "transport/tcp/gate.h"
#include "transport/tcp/outgoing_lane.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::transport::tcp {

class Lanes {
 public:
    // `station` outlives this, and its acceptor thread has ended before this does.
    explicit Lanes(link::Station& station)
        : station_(station), door_(gate_, station.memory(), station.waker(), station.options().wakes_at_landing) {}

    // Lets the holder of the incoming lane in; for the station.
    link::LaneDoor& door() { return door_; }

    // See Fabric.
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
        return gate_.open(holder, incarnation, base);
    }
    // The same, for an address that names the lane by `token` and says more.
    Result<void> open_incoming(const link::LaneToken& token, ReplicaId holder, Incarnation incarnation, Position base) {
        return gate_.open(token, holder, incarnation, base);
    }
    void revoke_incoming() { gate_.revoke(); }
    Position incoming_landed() const { return gate_.landed(); }

    // The outgoing lane that the token opens at `peer`; an error in its place breaks it at once.
    void connect(LaneId id, ReplicaId peer, const Result<link::LaneToken>& token);
    // None if there is no such lane, or not any more.
    OutgoingLane* find(LaneId id) const;
    bool empty() const { return lanes_.empty(); }
    void flush();
    void end(LaneId id);
    void break_off(ReplicaId peer, const std::string& why);
    // Before a poll: asks for acknowledgements again. Says whether `report` has something to say.
    bool watch();
    // After it: what has happened. A lane that has broken is gone then.
    void report(std::vector<Event>& events);

 private:
    link::Station& station_;
    Gate gate_;
    Door door_;
    std::vector<std::shared_ptr<OutgoingLane>> lanes_;  // as many as peers: a search is short
};

}  // namespace lockstep::transport::tcp
