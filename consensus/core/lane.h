// A leader's side of one lane: what was posted, what has landed.
#pragma once

#include "log/check.h"
#include "log/entry.h"
#include "transport/types.h"

#include <lockstep/types.h>

#include <array>
#include <cstdint>

namespace lockstep::core {

// A write or probe under way.
struct Flight {
    Position start;         // of the source bytes, which S11 keeps until this ends (F9)
    Position upto;          // their end
    bool write = false;
    bool whole = false;     // ends at an entry's end: then `end` is the point there
    log::Point end;
    std::uint64_t probe = 0;
    std::uint64_t posted_ns = 0;
};

// Fixed memory; first in, first out (F1).
class Flights {
 public:
    static constexpr std::size_t kMax = transport::kMaxUnfinishedWrites;
    static_assert((kMax & (kMax - 1)) == 0, "a power of two, so that a place is a mask away");

    bool full() const { return posted_ - finished_ == kMax; }
    bool empty() const { return posted_ == finished_; }
    std::size_t size() const { return posted_ - finished_; }
    void push(const Flight& flight) {
        LOCKSTEP_CHECK(!full());
        flights_[posted_++ & (kMax - 1)] = flight;
    }
    const Flight& front() const { return flights_[finished_ & (kMax - 1)]; }
    void pop() {
        LOCKSTEP_CHECK(!empty());
        ++finished_;
    }
    // How many have finished since the lane was made.
    std::uint64_t finished() const { return finished_; }
    std::uint64_t posted() const { return posted_; }
    void clear() { posted_ = finished_ = 0; }
    // The i-th oldest that is under way.
    const Flight& at(std::size_t i) const { return flights_[(finished_ + i) & (kMax - 1)]; }

 private:
    std::array<Flight, kMax> flights_{};
    std::uint64_t posted_ = 0;
    std::uint64_t finished_ = 0;
};

struct Lane {
    enum class State : std::uint8_t {
        none,      // not asked for, or the peer is not there
        opening,   // a prepare is out
        open,      // writes go: repairing until `landed` reaches the adopted end, then streaming
        detached,  // the follower needs bytes that the ring no longer has, or held it up
    };
    State state = State::none;
    transport::LaneId id;            // of an open lane
    Incarnation incarnation;         // of the life that opened it
    std::uint64_t open_number = 0;
    Position posted;                 // the next byte to post
    log::Point landed;               // an unbroken run from the base that the follower answered (S6)
    Position consumed;               // reported by the follower: writes stay below this plus the ring's size
    Position durable;                // reported by the follower, of this lane (S10)
    std::uint64_t report_sequence = 0;
    std::uint64_t contact_ns = 0;    // when the newest landed write or probe was posted
    std::uint64_t probe_landed = 0;
    Flights flights;
};

}  // namespace lockstep::core
