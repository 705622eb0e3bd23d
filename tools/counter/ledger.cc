#include "tools/counter/ledger.h"

#include <algorithm>
#include <utility>

namespace lockstep::counter {
namespace {

constexpr std::size_t kMaxViolations = 20;
// More increments than that are not told apart: 512 MiB of marks.
constexpr std::int64_t kMaxIncrements = std::int64_t{1} << 32;

std::uint64_t us_between(Clock::time_point from, Clock::time_point to) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(to - from).count());
}

}  // namespace

Ledger::Ledger(std::int64_t value_before, Clock::time_point now) : highest_(value_before), last_ack_(now) {
    report_.value_before = value_before;
}

void Ledger::violated(std::string what) {
    if (report_.violations.size() < kMaxViolations) report_.violations.push_back(std::move(what));
}

void Ledger::acked(std::int64_t value, std::int64_t floor, Clock::time_point sent, Clock::time_point now) {
    report_.longest_gap_us = std::max(report_.longest_gap_us, us_between(last_ack_, now));
    last_ack_ = now;
    ++report_.acked;
    while (!events_.empty() && sent > events_.front()) {
        report_.event_gaps_us.push_back(us_between(events_.front(), now));
        events_.pop_front();
    }
    if (value <= floor) {
        violated("value " + std::to_string(value) + " was answered to an increment sent after " +
                 std::to_string(floor) + " had been acknowledged");
    }
    highest_ = std::max(highest_, value);
    const std::int64_t place = value - report_.value_before - 1;
    if (place < 0 || place >= kMaxIncrements) {
        return violated("value " + std::to_string(value) + " cannot be: the counter began at " +
                        std::to_string(report_.value_before));
    }
    const auto at = static_cast<std::size_t>(place);
    if (at >= seen_.size()) seen_.resize(std::max(at + 1, seen_.size() * 2));
    if (seen_[at]) return violated("value " + std::to_string(value) + " was acknowledged twice");
    seen_[at] = true;
}

void Ledger::finish(std::int64_t value_after) {
    report_.value_after = value_after;
    report_.value_read = true;
    if (highest_ > value_after) {
        violated("the counter stands at " + std::to_string(value_after) + ", but " + std::to_string(highest_) +
                 " had been acknowledged");
    }
    const std::int64_t grown = value_after - report_.value_before;
    const auto acked = static_cast<std::int64_t>(report_.acked);
    if (grown < acked) {
        violated("lost: " + std::to_string(acked) + " increments were acknowledged, but the counter grew by " +
                 std::to_string(grown));
    }
    if (grown > acked + static_cast<std::int64_t>(report_.unknown)) {
        violated("doubled: the counter grew by " + std::to_string(grown) + ", but only " + std::to_string(acked) +
                 " increments were acknowledged and " + std::to_string(report_.unknown) + " are unknown");
    }
}

}  // namespace lockstep::counter
