// What a spinning thread does between two looks.
#pragma once

#include <thread>

namespace lockstep::transport::link {

// Nothing at first: what is waited for is likely some microseconds away. After a while in vain it yields the processor
// on each turn: where there are fewer cores than spinning threads, the one that is waited for may be next in line here.
class SpinPause {
 public:
    void once() {
        if (++looks_in_vain_ > kLooksBeforeYield) std::this_thread::yield();
    }
    void found() { looks_in_vain_ = 0; }

 private:
    static constexpr unsigned kLooksBeforeYield = 64;

    unsigned looks_in_vain_ = 0;
};

}  // namespace lockstep::transport::link
