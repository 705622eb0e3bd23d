#include "consensus/replica/replay.h"

#include <algorithm>
#include <vector>

namespace lockstep::replica {

namespace {

constexpr std::size_t kMaxBatch = 1024;

// Applies entries as soon as a header behind them, or the floor, says that they are committed (S9); keeps the others
// until then.
class Replay {
 public:
    explicit Replay(StateMachine& state_machine) : state_machine_(state_machine) {}

    void start(const log::Point& base) { commit_ = base; }
    void see(const log::VerifiedEntry& entry) {
        waiting_.push_back({entry.end, entry.header.kind, bytes_.size(), entry.payload.size()});
        bytes_.insert(bytes_.end(), entry.payload.begin(), entry.payload.end());
        certified_ = std::max(certified_, Index{entry.header.commit});
        if (certified_.value >= waiting_.front().end.index.value + kMaxBatch) apply();
    }
    void certify(Index committed) { certified_ = std::max(certified_, committed); }
    void apply() {
        std::size_t count = 0;
        while (count < waiting_.size() && waiting_[count].end.index <= certified_) {
            const std::size_t from = count;
            batch_.clear();
            for (; count < waiting_.size() && waiting_[count].end.index <= certified_ && count - from < kMaxBatch;
                 ++count) {
                const Waiting& one = waiting_[count];
                if (one.kind == log::EntryKind::command)
                    batch_.push_back({one.end.index, one.end.ballot, one.end.timestamp_ns,
                                      BytesView(bytes_).subspan(one.offset, one.bytes)});
            }
            commit_ = waiting_[count - 1].end;
            if (batch_.empty()) continue;
            replies_.begin(batch_.size(), false);
            state_machine_.apply(batch_, replies_);
        }
        forget(count);
    }
    const log::Point& commit() const { return commit_; }

 private:
    struct Waiting {
        log::Point end;
        log::EntryKind kind;
        std::size_t offset;
        std::size_t bytes;
    };

    void forget(std::size_t count) {
        if (count == 0) return;
        const std::size_t bytes = count < waiting_.size() ? waiting_[count].offset : bytes_.size();
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
        for (Waiting& one : waiting_) one.offset -= bytes;
    }

    StateMachine& state_machine_;
    log::Point commit_;
    Index certified_;
    std::vector<Waiting> waiting_;
    std::vector<std::byte> bytes_;
    std::vector<Entry> batch_;
    Replies replies_;
};

}  // namespace

Result<std::optional<Replayed>> replay(log::Disk& disk, const log::Identity& identity, log::Ring ring,
                                       const core::Config& voters, StateMachine& state_machine,
                                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    auto hard = log::read_hard_state(disk);
    if (!hard) return std::move(hard).error();
    if (!hard.value()) return std::optional<Replayed>{};
    Replay replay(state_machine);
    replay.start(hard.value()->state.base);
    log::RecoverOptions options;
    options.visit = [&](const log::VerifiedEntry& entry) { replay.see(entry); };
    options.progress = progress;
    auto found = log::recover(disk, identity, ring, options);
    if (!found) return std::move(found).error();
    replay.certify(found.value()->floor.committed);
    replay.apply();
    if (auto settled = log::settle(disk, *found.value()); !settled) return std::move(settled).error();

    Replayed replayed{std::move(*found.value()), {}};
    const log::Recovered& log = replayed.log;
    // To go on would be to cut what stands behind the damage, which may be repaired yet.
    if (log.found == log::Damage::corrupt)
        return Error("the log on disk is damaged in what this replica has acknowledged: " + log.story +
                     ". Nothing was changed. The others go on while they are a majority");
    replayed.core = core::Recovered{.genesis = log.hard.genesis,
                                    .config = voters,
                                    .formed = true,
                                    .promised = log.hard.promised,
                                    .promised_to = log.hard.promised_to,
                                    .commit = replay.commit(),
                                    .low_mark = log.ring_from,
                                    .loss = static_cast<core::Loss>(log.owed.damage),
                                    .lost_until = log.owed.end.position};
    return std::optional<Replayed>(std::move(replayed));
}

}  // namespace lockstep::replica
