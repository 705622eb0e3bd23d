#include "transport/link/sleeper.h"

#include "transport/link/spin_pause.h"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/timerfd.h>

namespace lockstep::transport::link {
namespace {

using std::chrono::steady_clock;

// Shorter waits need the alarm; for longer ones a millisecond more does not matter.
constexpr auto kAlarmBelow = std::chrono::milliseconds(5);
// A wait that was over sooner has not given up the processor.
constexpr auto kTrueSleep = std::chrono::microseconds(3);
constexpr auto kLongestWait = std::chrono::minutes(1);

}  // namespace

Result<std::unique_ptr<Sleeper>> Sleeper::make(boost::asio::io_context& context, Waker& waker, WorkSource* source,
                                               Polling polling, std::chrono::microseconds spin) {
    std::unique_ptr<Sleeper> sleeper(new Sleeper(context, waker, source, polling, spin));
    const int alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (alarm < 0) return Error("cannot make a timer: " + std::string(std::strerror(errno)));
    boost::system::error_code error;
    sleeper->alarm_.assign(alarm, error);
    if (!error) sleeper->wakes_.assign(waker.descriptor(), error);
    if (error) return Error("cannot watch a timer: " + error.message());
    sleeper->watch_wakes();
    sleeper->watch_alarm();
    return sleeper;
}

Sleeper::Sleeper(boost::asio::io_context& context, Waker& waker, WorkSource* source, Polling polling,
                 std::chrono::microseconds spin)
    : context_(context), waker_(waker), source_(source), polling_(polling), spin_(spin), wakes_(context),
      alarm_(context) {}

Sleeper::~Sleeper() {
    if (wakes_.is_open()) wakes_.release();  // the waker's own
}

void Sleeper::watch_wakes() {
    wakes_.async_read_some(boost::asio::buffer(&wake_count_, sizeof wake_count_),
                           [this](const boost::system::error_code& error, std::size_t) {
                               if (!error) watch_wakes();
                           });
}

void Sleeper::watch_alarm() {
    alarm_.async_read_some(boost::asio::buffer(&alarm_count_, sizeof alarm_count_),
                           [this](const boost::system::error_code& error, std::size_t) {
                               if (!error) watch_alarm();
                           });
}

void Sleeper::run(std::chrono::nanoseconds wait, bool may_spin) {
    const bool found = source_ != nullptr && source_->look();
    if (found && ++looks_ % kLooksPerPoll != 0) return;
    if (found || wait <= std::chrono::nanoseconds::zero()) {
        context_.poll();
        return;
    }
    wait = std::min<std::chrono::nanoseconds>(wait, kLongestWait);
    auto start = steady_clock::now();
    if (may_spin && polling_ != Polling::blocking) {
        const auto spin = polling_ == Polling::spin ? wait : std::min<std::chrono::nanoseconds>(wait, spin_);
        if (spin_until(start + spin)) return;
        wait -= spin;
        if (wait <= std::chrono::nanoseconds::zero()) return;
        start += spin;
    }
    if (waker_.fall_asleep() && (source_ == nullptr || source_->arm())) sleep(wait);
    waker_.rise();
    // Under load, what is ready in the same moment belongs to the same turn. After a true sleep the first thing is what
    // was waited for: whatever else there is can come with the next turn, and that which slept goes on a system call
    // earlier.
    if (steady_clock::now() - start < kTrueSleep) context_.poll();
}

bool Sleeper::spin_until(steady_clock::time_point end) {
    SpinPause pause;
    do {
        if (source_ != nullptr && source_->look()) return true;
        if (waker_.called()) return true;
        if ((source_ == nullptr || ++looks_ % kLooksPerPoll == 0) && context_.poll() > 0) return true;
        pause.once();
    } while (steady_clock::now() < end);
    return false;
}

void Sleeper::sleep(std::chrono::nanoseconds wait) {
    if (wait >= kAlarmBelow) {
        context_.run_one_for(wait);
        return;
    }
    itimerspec moment{};
    moment.it_value.tv_nsec = wait.count();
    static_assert(kAlarmBelow < std::chrono::seconds(1));
    // An alarm that is left over when something else comes first ends a later wait early, or is set anew: both are
    // harmless.
    timerfd_settime(alarm_.native_handle(), 0, &moment, nullptr);
    context_.run_one();
}

}  // namespace lockstep::transport::link
