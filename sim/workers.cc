#include "sim/workers.h"

namespace lockstep::sim {

namespace {

constexpr std::uint64_t kOperationNs = 10'000;  // what a disk takes for anything but a sync, and up to twice that
constexpr std::uint64_t kSyncNs = 200'000;      // likewise for a sync
constexpr std::uint64_t kHungNs = 1'000'000;    // until a disk that hangs is asked again

}  // namespace

bool SimWorker::turn(log::Wal& wal) {
    const auto outcome = std::exchange(outcome_, std::nullopt);
    if (outcome) wal.finish(*outcome);
    if (job_ == nullptr) {
        job_ = wal.next();
        next_ = 0;
        if (job_ != nullptr) plan();
    }
    return outcome.has_value();
}

// An operation takes as long as a message, a sync several times that.
void SimWorker::plan() {
    const bool sync = job_->operations()[next_].kind == log::DiskOperation::Kind::sync;
    const std::uint64_t spread_ns = sync ? kSyncNs : kOperationNs;
    const std::uint64_t takes_ns = disk_.hung() ? kHungNs : kOperationNs + network_.random().below(spread_ns);
    network_.at(network_.now_ns() + takes_ns, [this, alive = alive_] {
        if (*alive) perform();
    });
}

void SimWorker::perform() {
    if (disk_.hung()) return plan();
    auto outcome = disk_.perform(job_->operations()[next_]);
    if (outcome.ok() && ++next_ < job_->operations().size()) return plan();
    job_ = nullptr;
    outcome_ = std::move(outcome);
    wake_();
}

void SimBackground::run(std::function<void()> work) {
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) plan();
}

void SimBackground::plan() {
    const std::uint64_t takes_ns = disk_.hung() ? kHungNs : kSyncNs + network_.random().below(kSyncNs);
    network_.at(network_.now_ns() + takes_ns, [this, alive = alive_] {
        if (!*alive) return;
        if (disk_.hung()) return plan();
        const std::function<void()> work = std::move(waiting_.front());
        work();
        waiting_.pop_front();
        if (!waiting_.empty()) plan();
    });
}

}  // namespace lockstep::sim
