#include "tools/sim/campaign.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace lockstep::tools::sim {

namespace {

using lockstep::sim::Apart;
using lockstep::sim::Failure;
using lockstep::sim::RunResult;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kTell{5};

class Campaign {
 public:
    Campaign(const Plan& plan, Totals& totals) : plan_(plan), totals_(totals), next_(plan.from) {}

    std::optional<Found> all() {
        while (true) {
            while (running_.size() < plan_.jobs && may_start()) {
                running_.push_back({next_, Apart(plan_.draw(next_, plan_.replicas))});
                if (next_++ == plan_.to) exhausted_ = true;
            }
            if (running_.empty()) return found_;
            wait();
            tell();
        }
    }

 private:
    struct Running {
        std::uint64_t seed;
        Apart run;
    };

    bool may_start() const {
        return !found_ && !exhausted_ && (!plan_.ends || steady_clock::now() < *plan_.ends);
    }

    void wait() {
        std::vector<pollfd> waits;
        for (const Running& one : running_) waits.push_back({one.run.descriptor(), POLLIN, 0});
        poll(waits.data(), waits.size(), 1000);
        for (std::size_t at = running_.size(); at-- > 0;) {
            Apart& run = running_[at].run;
            bool ended = (waits[at].revents != 0 || run.descriptor() < 0) && run.take();
            if (!ended && steady_clock::now() > run.started() + lockstep::sim::kRunLimit) {
                run.give_up();
                ended = true;
            }
            if (!ended) continue;
            end(running_[at].seed, run.result());
            running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }

    void end(std::uint64_t seed, const RunResult& result) {
        ++totals_.seeds;
        totals_.acknowledged += result.acknowledged;
        totals_.elections += result.elections;
        totals_.undecided += result.undecided;
        totals_.virtual_ns += result.virtual_ns;
        totals_.to_leader_ns = std::max(totals_.to_leader_ns, result.to_leader_ns);
        totals_.to_commit_ns = std::max(totals_.to_commit_ns, result.to_commit_ns);
        if (result.failure != Failure::none && (!found_ || seed < found_->seed)) found_ = Found{seed, result};
    }

    void tell() {
        if (plan_.quiet || steady_clock::now() < told_ + kTell) return;
        told_ = steady_clock::now();
        std::fprintf(stderr, "%llu seeds, %llu virtual seconds, %llu elections, %llu acknowledged\n",
                     static_cast<unsigned long long>(totals_.seeds),
                     static_cast<unsigned long long>(totals_.virtual_ns / 1'000'000'000),
                     static_cast<unsigned long long>(totals_.elections),
                     static_cast<unsigned long long>(totals_.acknowledged));
    }

    const Plan& plan_;
    Totals& totals_;
    std::uint64_t next_;
    bool exhausted_ = false;
    std::vector<Running> running_;
    std::optional<Found> found_;
    steady_clock::time_point told_ = steady_clock::now();
};

}  // namespace

std::optional<Found> run_seeds(const Plan& plan, Totals& totals) { return Campaign(plan, totals).all(); }

}  // namespace lockstep::tools::sim
