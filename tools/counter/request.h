// A group on its way: who wants it done, and how it ended.
#pragma once

#include <lockstep/replica.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::counter {

using Clock = std::chrono::steady_clock;

struct Request;

// Where the answer goes. Used on the server's thread.
class Requester {
 public:
    virtual ~Requester() = default;
    // The request has ended; see its `fate`. It belongs to the requester again.
    virtual void answered(Request& request) = 0;
    // Whether nobody waits any more: the request may be dropped where it has not been handed to a log yet.
    virtual bool gone() const = 0;
};

// Threads: belongs to the server's thread but between the call of Log::propose or Log::read and that call's
// completion, when it belongs to the log's.
struct Request {
    std::string group;
    bool writes = false;
    bool from_replica = false;           // another replica forwards it here: it goes no further (the loop guard)
    std::shared_ptr<Requester> requester;  // set while under way: keeps the owner of this request alive
    Clock::time_point deadline;          // after it no further attempt is made
    std::uint32_t hops = 0;              // attempts since it last waited

    // How it ended, as Outcome; `reply` holds the group's replies if it was applied.
    Fate fate = Fate::unknown;
    Reason reason = Reason::none;
    ReplicaId leader;
    std::string reply;

    void end(Fate how, Reason why, ReplicaId who = {}) {
        fate = how;
        reason = why;
        leader = who;
        reply.clear();
    }
};

}  // namespace lockstep::counter
