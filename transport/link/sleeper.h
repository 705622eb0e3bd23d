// How the protocol thread waits: for its sockets, a wake-up, a moment, or what a transport adds. Protocol thread only.
#pragma once

#include "transport/link/waker.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace lockstep::transport::link {

// Something besides sockets that the protocol thread waits for: a completion queue.
class WorkSource {
 public:
    // Takes what has come; true if there was something. Cheap: a spinning thread calls nothing else.
    virtual bool look() = 0;
    // Before a sleep: whatever comes from now on makes a descriptor of the context readable. False if something came
    // before that, and it must not sleep.
    virtual bool arm() = 0;

 protected:
    ~WorkSource() = default;
};

class Sleeper {
 public:
    // `context`, `waker` and `source` (null: none) outlive this. Error: the system gives no timer.
    static Result<std::unique_ptr<Sleeper>> make(boost::asio::io_context& context, Waker& waker, WorkSource* source,
                                                 Polling polling, std::chrono::microseconds spin);
    ~Sleeper();

    // Runs what is ready; if nothing is, waits up to `wait` for something. Returns early after a wake-up. `may_spin`:
    // something is waited for whose delay somebody feels, so that it waits as the polling option says; otherwise it
    // sleeps whatever that says.
    void run(std::chrono::nanoseconds wait, bool may_spin);

 private:
    // While a source has work at every look, sockets are looked at once in so many turns: it costs a system call.
    static constexpr unsigned kLooksPerPoll = 16;

    Sleeper(boost::asio::io_context& context, Waker& waker, WorkSource* source, Polling polling,
            std::chrono::microseconds spin);
    // True if something was run or the thread was woken before `end`.
    bool spin_until(std::chrono::steady_clock::time_point end);
    void sleep(std::chrono::nanoseconds wait);
    void watch_wakes();
    void watch_alarm();

    boost::asio::io_context& context_;
    Waker& waker_;
    WorkSource* const source_;
    unsigned looks_ = 0;
    const Polling polling_;
    const std::chrono::microseconds spin_;
    boost::asio::posix::stream_descriptor wakes_;
    boost::asio::posix::stream_descriptor alarm_;  // a timerfd: the reactor's own time-out counts in milliseconds
    std::uint64_t wake_count_ = 0;                 // where reads of the two descriptors go
    std::uint64_t alarm_count_ = 0;
};

}  // namespace lockstep::transport::link
