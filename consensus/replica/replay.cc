#include "consensus/replica/replay.h"

#include "transport/logger.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::replica {

namespace {

constexpr std::size_t kMaxBatch = 1024;

// Applies entries as soon as a header behind them, or the floor, says that they are committed (S9); keeps the others
// until then. With a snapshot it begins where the log passes that one's point.
class Replay {
 public:
    using Restore = std::function<Result<void>()>;

    // Without a snapshot `start` is where the log begins.
    Replay(StateMachine& state_machine, const log::Point& start, const core::Config& config, const log::Point& begin,
           Restore restore)
        : state_machine_(state_machine), commit_(start), config_(config), restore_(std::move(restore)) {
        if (begin == start) begin_here();
    }

    void see(const log::VerifiedEntry& entry) {
        if (!begun_) {
            if (entry.end.index == commit_.index && entry.end.checksum == commit_.checksum) begin_here();
            return;
        }
        if (failed_) return;
        waiting_.push_back({entry.end, entry.header.kind, bytes_.size(), entry.payload.size()});
        bytes_.insert(bytes_.end(), entry.payload.begin(), entry.payload.end());
        certified_ = std::max(certified_, Index{entry.header.commit});
        if (certified_.value >= waiting_.front().end.index.value + kMaxBatch) apply();
    }
    // Whether the log has passed the point where it was to begin.
    bool begun() const { return begun_; }
    const std::optional<Error>& failed() const { return failed_; }
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
                if (one.kind == log::EntryKind::config)
                    config_ = core::config_in(BytesView(bytes_).subspan(one.offset, one.bytes), one.end.index).config;
            }
            commit_ = waiting_[count - 1].end;
            if (batch_.empty()) continue;
            replies_.begin(batch_.size(), false);
            state_machine_.apply(batch_, replies_);
        }
        forget(count);
    }
    const log::Point& commit() const { return commit_; }
    const core::Config& config() const { return config_; }  // as of the commit (S16)

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

    void begin_here() {
        begun_ = true;
        if (!restore_) return;
        if (auto restored = restore_(); !restored) failed_ = std::move(restored).error();
    }

    StateMachine& state_machine_;
    log::Point commit_;
    core::Config config_;
    const Restore restore_;
    bool begun_ = false;
    std::optional<Error> failed_;
    Index certified_;
    std::vector<Waiting> waiting_;
    std::vector<std::byte> bytes_;
    std::vector<Entry> batch_;
    Replies replies_;
};

// What coming back needs, for one attempt after the other.
struct Folder {
    log::Disk& disk;
    const log::Identity& identity;
    log::Ring& ring;
    const core::Config& first_config;
    SnapshotStore& snapshots;
    StateMachine& state_machine;
    const std::function<void(std::uint64_t, std::uint64_t)>& progress;
};

Result<core::Config> config_at(const SnapshotStore::Held* snapshot, const core::Config& first_config) {
    if (snapshot == nullptr) return first_config;
    auto named = core::config_of(snapshot->meta.config);
    if (!named)
        return std::move(named).error().within("the snapshot of index " + to_string(snapshot->name.at.index));
    return named;
}

core::Recovered recovered_core(const log::Recovered& log, const Replay& replay, const core::Config& first_config) {
    return {.genesis = log.hard.genesis,
            .first_config = first_config,
            .config = replay.config(),
            .formed = true,
            .promised = log.hard.promised,
            .promised_to = log.hard.promised_to,
            .commit = replay.commit(),
            .low_mark = log.ring_from,
            .loss = static_cast<core::Loss>(log.owed.damage),
            .lost_until = log.owed.end.position,
            .lost_in = log.owed.found_in};
}

// From a snapshot, or without one, with the log from `begin` on. Nothing where the log is whole and does not pass the
// snapshot's point; the state machine is as it was then.
Result<std::optional<Replayed>> replay_from(const Folder& folder, const SnapshotStore::Held* snapshot,
                                            const log::Point& begin) {
    const auto restore = [&]() -> Result<void> {
        auto source = folder.snapshots.open(snapshot->name);
        if (!source) return std::move(source).error();
        return folder.state_machine.restore(*source.value());
    };
    auto config = config_at(snapshot, folder.first_config);
    if (!config) return std::move(config).error();
    Replay replay(folder.state_machine, snapshot != nullptr ? snapshot->name.at : begin, config.value(), begin,
                  snapshot != nullptr ? Replay::Restore(restore) : Replay::Restore());
    log::RecoverOptions options;
    options.begin = begin;
    options.visit = [&](const log::VerifiedEntry& entry) { replay.see(entry); };
    options.progress = folder.progress;
    auto found = log::recover(folder.disk, folder.identity, folder.ring, options);
    if (!found) return std::move(found).error();
    if (replay.failed())
        return Error(*replay.failed())
            .within("cannot begin with the snapshot of index " + to_string(snapshot->name.at.index));
    const log::Recovered& log = *found.value();
    if (!replay.begun()) {
        // All below the snapshot is in it: what is damaged there is no loss; from its point on the log may be whole.
        if (log.found == log::Damage::none) return std::optional<Replayed>{};
        logger().warn("{}; goes on from the snapshot of index {}", log.story, to_string(snapshot->name.at.index));
        return replay_from(folder, snapshot, snapshot->name.at);
    }
    replay.certify(log.floor.committed);
    replay.apply();
    if (auto settled = log::settle(folder.disk, log, folder.ring); !settled) return std::move(settled).error();
    const core::Recovered core = recovered_core(log, replay, folder.first_config);
    return std::optional<Replayed>(Replayed{std::move(*found.value()), core});
}

}  // namespace

Result<std::optional<Replayed>> replay(log::Disk& disk, const log::Identity& identity, log::Ring ring,
                                       const core::Config& first_config, SnapshotStore& snapshots,
                                       StateMachine& state_machine,
                                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    auto read = log::read_hard_state(disk);
    if (!read) return std::move(read).error();
    if (!read.value()) return std::optional<Replayed>{};
    const log::HardState& hard = read.value()->state;
    const Folder folder{disk, identity, ring, first_config, snapshots, state_machine, progress};
    // The newest first. One that was received and never installed, or taken of more than this disk had, is of no log
    // here: those of before still are.
    for (const SnapshotStore::Held& held : snapshots.held()) {
        if (held.meta.genesis != hard.genesis || held.name.at.index < hard.base.index) continue;
        auto replayed = replay_from(folder, &held, hard.base);
        if (!replayed || replayed.value()) return replayed;
    }
    if (hard.base.index != Index{}) {
        std::string text = "the log on disk begins behind index " + to_string(hard.base.index) +
                           ", and no snapshot of what was before is there";
        for (const SnapshotStore::Damaged& one : snapshots.damaged()) text += "; " + one.why;
        return Error(text + ". A replica whose disk is damaged must not come back as if it were not: give it an empty "
                     "data folder and start it with join (--join): the others take it in while they are a majority");
    }
    return replay_from(folder, nullptr, hard.base);
}

}  // namespace lockstep::replica
