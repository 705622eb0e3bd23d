#include "tools/bench/load.h"

#include "tools/bench/clock.h"
#include "tools/bench/process.h"

#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::bench {

Load::Load(Replica& replica, const LoadPlan& plan)
    : replica_(replica), plan_(plan), command_(plan.bytes, std::byte{0x5a}), proposed_ns_(plan.depth) {}

Result<LoadResult> Load::run(std::uint64_t deadline_ns) {
    // The answer to a read comes on the protocol thread: from there on all happens there.
    replica_.read([this](const Outcome& outcome) { begin(outcome); });
    while (!finished_.load(std::memory_order_acquire)) {
        if (auto going = go_on(deadline_ns, "a measurement"); !going) {
            replica_.stop();
            return std::move(going).error();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!failure_.empty()) return Error(failure_);
    LoadResult result;
    if (measured_ns_ > 0)
        result.entries_per_s =
            static_cast<double>(latency_.total()) * static_cast<double>(kSecond) / static_cast<double>(measured_ns_);
    result.latency = std::move(latency_);
    return result;
}

void Load::begin(const Outcome& outcome) {
    if (outcome.fate != Fate::applied) return drain(outcome);
    phase_end_ns_ = now_ns() + plan_.warm_up_ns;
    open_ = plan_.depth;
    for (std::size_t slot = 0; slot < plan_.depth; ++slot) {
        proposed_ns_[slot] = now_ns();
        propose(slot);
    }
}

// Two words, so that the callback fits into a std::function without an allocation.
void Load::propose(std::size_t slot) {
    replica_.propose(command_, [this, slot](const Outcome& outcome) { done(slot, outcome); });
}

void Load::done(std::size_t slot, const Outcome& outcome) {
    if (outcome.fate != Fate::applied || phase_ == Phase::drain) return drain(outcome);
    const bool last = ++taken_ >= plan_.entries;
    if (plan_.timed) {
        const std::uint64_t now = now_ns();
        latency_.record(now - proposed_ns_[slot]);
        if (last || now >= phase_end_ns_) next_phase(now);
        proposed_ns_[slot] = now;
    } else if (last) {
        phase_ = Phase::drain;
    }
    if (phase_ == Phase::drain) return drain(outcome);
    propose(slot);
}

void Load::next_phase(std::uint64_t now) {
    if (phase_ == Phase::warm_up) {
        phase_ = Phase::measure;
        latency_.clear();
        measured_from_ns_ = now;
        phase_end_ns_ = now + plan_.measure_ns;
    } else {
        phase_ = Phase::drain;
        measured_ns_ = now - measured_from_ns_;
    }
}

void Load::drain(const Outcome& outcome) {
    phase_ = Phase::drain;
    if (outcome.fate != Fate::applied && failure_.empty())
        failure_ = std::string("a proposal was ") + to_string(outcome.fate) + " (" + to_string(outcome.reason) + ")";
    if (open_ > 0) --open_;
    if (open_ == 0) finished_.store(true, std::memory_order_release);
}

}  // namespace lockstep::bench
