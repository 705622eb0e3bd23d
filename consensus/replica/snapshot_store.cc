#include "consensus/replica/snapshot_store.h"

#include "consensus/replica/snapshot_files.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace lockstep::replica {

using Kind = SnapshotOutcome::Kind;

// What both threads know. Work holds it, so that work which is done after the store has ended finds that out.
struct SnapshotStore::Shared {
    Shared(log::Disk& disk, std::function<void()> wake_owner) : files(disk), wake(std::move(wake_owner)) {}

    struct Numbered {
        std::uint64_t receive_number = 0;
        SnapshotOutcome outcome;
    };

    SnapshotFiles files;  // used by work, and by calls that block
    const std::function<void()> wake;
    std::atomic<bool> stop = false;

    std::mutex mutex;
    std::condition_variable idle;
    bool working = false;
    std::vector<Numbered> outcomes;
    std::optional<Error> fatal;
};

SnapshotStore::SnapshotStore(log::Disk& disk, Background& background, std::function<void()> wake)
    : background_(background), shared_(std::make_shared<Shared>(disk, std::move(wake))) {}

SnapshotStore::~SnapshotStore() {
    std::unique_lock lock(shared_->mutex);
    shared_->stop = true;
    shared_->idle.wait(lock, [this] { return !shared_->working; });
}

void SnapshotStore::run(Work work) {
    background_.run([shared = shared_, number = receive_number_, work = std::move(work)] {
        {
            const std::lock_guard lock(shared->mutex);
            if (shared->stop || shared->fatal) return;
            shared->working = true;
        }
        auto outcome = work(*shared);
        bool news = false;
        {
            const std::lock_guard lock(shared->mutex);
            news = !outcome || outcome.value();
            if (!outcome)
                shared->fatal = std::move(outcome).error().within("the snapshots on disk have stopped for good");
            else if (news)
                shared->outcomes.push_back({number, std::move(*outcome.value())});
        }
        if (news && !shared->stop) shared->wake();
        // Under the lock to its end: the store may be gone, and what it holds with it, as soon as this is known.
        const std::lock_guard lock(shared->mutex);
        shared->working = false;
        shared->idle.notify_all();
    });
}

Result<void> SnapshotStore::load(bool none_counts) {
    auto loaded = shared_->files.load(none_counts);
    if (!loaded) return std::move(loaded).error().within("cannot load the snapshots");
    held_ = std::move(loaded.value().held);
    damaged_ = std::move(loaded.value().damaged);
    return {};
}

Result<void> SnapshotStore::remove_damaged() {
    std::vector<log::FileName> names;
    for (const Damaged& one : damaged_) names.push_back(one.file);
    damaged_.clear();
    return names.empty() ? Result<void>() : shared_->files.remove(names);
}

void SnapshotStore::take(const log::SnapshotMeta& meta, std::unique_ptr<SnapshotView> view) {
    LOCKSTEP_CHECK(!taking_);
    LOCKSTEP_CHECK(view != nullptr);
    taking_ = true;
    // A function has to be copied, a view cannot.
    const auto box = std::make_shared<std::unique_ptr<SnapshotView>>(std::move(view));
    run([meta, box](Shared& shared) -> Result<std::optional<SnapshotOutcome>> {
        const auto own = std::move(*box);
        auto outcome = shared.files.take(meta, *own, shared.stop);
        if (!outcome) return std::move(outcome).error();
        return std::optional(std::move(outcome).value());
    });
}

void SnapshotStore::read_piece(ReplicaId peer, const log::SnapshotName& name, std::uint64_t offset,
                               std::uint64_t bytes) {
    const bool there = std::ranges::any_of(held_, [&](const Held& held) { return held.name == name; });
    run([=](Shared& shared) -> Result<std::optional<SnapshotOutcome>> {
        return std::optional(shared.files.read_piece(peer, name, offset, there ? bytes : 0));
    });
}

void SnapshotStore::receive(const log::SnapshotName& name) {
    if (receiving_ == name) return;
    receiving_ = name;
    received_ = 0;
    ++receive_number_;
    run([name](Shared& shared) { return shared.files.begin_to_receive(name); });
}

void SnapshotStore::write_piece(BytesView bytes) {
    LOCKSTEP_CHECK(receiving_.has_value());
    received_ += bytes.size();
    run([copy = std::vector<std::byte>(bytes.begin(), bytes.end())](Shared& shared) {
        return shared.files.write_piece(copy);
    });
}

void SnapshotStore::drop_older(Index than) {
    std::vector<log::FileName> names;
    for (const Held& held : held_)
        if (held.name.at.index < than) names.push_back(snapshot_file_name(held.name));
    if (names.empty()) return;
    std::erase_if(held_, [&](const Held& held) { return held.name.at.index < than; });
    run([names](Shared& shared) -> Result<std::optional<SnapshotOutcome>> {
        if (auto removed = shared.files.remove(names); !removed) return std::move(removed).error();
        return std::optional<SnapshotOutcome>();
    });
}

Result<std::unique_ptr<SnapshotSource>> SnapshotStore::open(const log::SnapshotName& name) {
    if (std::ranges::none_of(held_, [&](const Held& held) { return held.name == name; }))
        return Error("there is no " + to_string(name) + " on this disk");
    return shared_->files.open(name);
}

void SnapshotStore::hold(const Held& held) {
    std::erase_if(held_, [&](const Held& other) { return other.name == held.name; });
    const auto older = std::ranges::find_if(
        held_, [&](const Held& other) { return other.name.at.index <= held.name.at.index; });
    held_.insert(older, held);
}

// What an outcome changes in what this thread knows.
void SnapshotStore::note(const SnapshotOutcome& outcome, bool of_present_receive) {
    switch (outcome.kind) {
        case Kind::taken: hold({outcome.name, outcome.meta}); [[fallthrough]];
        case Kind::take_failed: taking_ = false; break;
        case Kind::piece_read:
        case Kind::piece_written: break;
        case Kind::received: hold({outcome.name, outcome.meta}); [[fallthrough]];
        case Kind::receive_failed:
            if (!of_present_receive) break;
            receiving_.reset();
            received_ = 0;
            break;
    }
}

Result<void> SnapshotStore::take_outcomes(std::vector<SnapshotOutcome>& outcomes) {
    std::vector<Shared::Numbered> come;
    {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->fatal) return *shared_->fatal;
        come = std::exchange(shared_->outcomes, {});
    }
    for (Shared::Numbered& numbered : come) {
        const Kind kind = numbered.outcome.kind;
        const bool present = numbered.receive_number == receive_number_;
        note(numbered.outcome, present);
        if (!present && (kind == Kind::piece_written || kind == Kind::receive_failed)) continue;
        outcomes.push_back(std::move(numbered.outcome));
    }
    return {};
}

}  // namespace lockstep::replica
