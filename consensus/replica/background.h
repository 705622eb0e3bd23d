// Where work is done that the protocol's thread must not wait for.
#pragma once

#include <functional>

namespace lockstep::replica {

// A thread in a real replica; virtual time in the simulator.
class Background {
 public:
    virtual ~Background() = default;
    // Has `work` done, behind all that was given before. Returns at once. Work that has not begun when the background
    // ends is destroyed without being done.
    virtual void run(std::function<void()> work) = 0;
};

}  // namespace lockstep::replica
