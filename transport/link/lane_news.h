// What a holder is told of its lane, over whichever transport.
#pragma once

#include "transport/fabric.h"

#include <lockstep/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::transport::link {

class LaneNews {
 public:
    LaneNews(LaneId lane, ReplicaId peer) : lane_(lane), peer_(peer) {}

    // Appends what is new of a lane on which `landed` requests have landed: each thing is said once.
    void report(std::uint64_t landed, bool broken, const std::string& why_broken, std::vector<Event>& events) {
        if (reported_ != landed) {
            reported_ = landed;
            tell(EventKind::landed, events).count = landed;
        }
        if (broken && !reported_broken_) {
            reported_broken_ = true;
            tell(EventKind::lane_broken, events).why = why_broken;
        }
    }
    // Whether `report` would append something.
    bool any(std::uint64_t landed, bool broken) const {
        return reported_ != landed || (broken && !reported_broken_);
    }

 private:
    Event& tell(EventKind kind, std::vector<Event>& events) const {
        Event& event = events.emplace_back();
        event.kind = kind;
        event.peer = peer_;
        event.lane = lane_;
        return event;
    }

    const LaneId lane_;
    const ReplicaId peer_;
    std::uint64_t reported_ = 0;
    bool reported_broken_ = false;
};

}  // namespace lockstep::transport::link
