#include "tests/unit/counter/fake_log.h"

#include <chrono>
#include <utility>

namespace lockstep::counter {

class FakeCluster::FakeLog final : public Log {
 public:
    FakeLog(FakeCluster& cluster, ReplicaId id) : cluster_(cluster), id_(id) {}
    void propose(BytesView command, Done done) override {
        std::string bytes(reinterpret_cast<const char*>(command.data()), command.size());
        cluster_.submit(id_, {std::move(bytes), std::move(done), false});
    }
    void read(Done done) override { cluster_.submit(id_, {{}, std::move(done), true}); }
    void take_snapshot(lockstep::Replica::SnapshotTaken done) override {
        {
            const std::lock_guard lock(cluster_.mutex_);
            if (cluster_.snapshots_held_) return cluster_.snapshots_.push_back(std::move(done));
        }
        done(Index{cluster_.entries()});
    }
    LogStatus status() const override {
        const std::lock_guard lock(cluster_.mutex_);
        LogStatus status;
        status.leader = cluster_.believed_ ? cluster_.believed_ : cluster_.leader_;
        status.role = cluster_.leader_ == id_ ? "leader" : "follower";
        status.ballot = "1." + std::to_string(cluster_.leader_.value);
        status.durability = "memory";
        status.committed = status.applied = cluster_.entries_;
        for (const auto& [id, replica] : cluster_.replicas_) {
            if (id != id_) status.peers.push_back({id, true, true, "fake", "streaming", 0, 0});
        }
        return status;
    }

 private:
    FakeCluster& cluster_;
    const ReplicaId id_;
};

FakeCluster::FakeCluster(std::uint8_t replicas, const Limits& limits) {
    for (std::uint8_t id = 1; id <= replicas; ++id) {
        auto replica = std::make_unique<Replica>(limits);
        replica->log = std::make_unique<FakeLog>(*this, ReplicaId{id});
        replicas_.emplace(ReplicaId{id}, std::move(replica));
    }
    leader_ = ReplicaId{1};
    thread_ = std::thread([this] { run(); });
}

FakeCluster::~FakeCluster() { stop(); }

void FakeCluster::submit(ReplicaId at, Pending pending) {
    Outcome refused{Fate::rejected, Reason::none, {}, {}, {}};
    {
        const std::lock_guard lock(mutex_);
        const Replica& replica = *replicas_.at(at);
        if (stopped_) {
            refused.reason = Reason::stopped;
        } else if (leader_ != at) {
            refused.reason = Reason::not_leader;
            refused.leader = replica.lied_to ? replica.told : leader_;
        } else if (busy_) {
            refused.reason = Reason::busy;
        } else {
            pending_.push_back(std::move(pending));
            changed_.notify_all();
            return;
        }
    }
    pending.done(refused);
}

void FakeCluster::lead(ReplicaId id, bool takes_effect) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !working_; });
    std::deque<Pending> lost;
    lost.swap(pending_);
    leader_ = id;
    working_ = true;
    lock.unlock();
    if (takes_effect) apply(lost);
    for (Pending& pending : lost) pending.done({Fate::unknown, Reason::none, {}, {}, {}});
    lock.lock();
    working_ = false;
    changed_.notify_all();
}

void FakeCluster::hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
}

void FakeCluster::set_busy(bool busy) {
    const std::lock_guard lock(mutex_);
    busy_ = busy;
}

void FakeCluster::tell(ReplicaId id, ReplicaId leader) {
    const std::lock_guard lock(mutex_);
    replicas_.at(id)->told = leader;
    replicas_.at(id)->lied_to = true;
}

void FakeCluster::believe(ReplicaId leader) {
    const std::lock_guard lock(mutex_);
    believed_ = leader;
}

void FakeCluster::hold_snapshots(bool held, const std::string& why) {
    std::vector<lockstep::Replica::SnapshotTaken> waiting;
    {
        const std::lock_guard lock(mutex_);
        snapshots_held_ = held;
        if (!held) waiting.swap(snapshots_);
    }
    for (const auto& done : waiting) done(why.empty() ? Result<Index>(Index{entries()}) : Result<Index>(Error(why)));
}

std::uint64_t FakeCluster::entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
}

bool FakeCluster::wait_for_pending(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return pending_.size() >= count; });
}

void FakeCluster::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    if (!thread_.joinable()) return;
    thread_.join();
    for (Pending& pending : pending_) pending.done({Fate::unknown, Reason::none, {}, {}, {}});
    pending_.clear();
}

void FakeCluster::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stopped_ || (!held_ && !working_ && !pending_.empty()); });
        if (stopped_) return;
        std::deque<Pending> batch;
        batch.swap(pending_);
        working_ = true;
        lock.unlock();
        carry_out(std::move(batch));
        lock.lock();
        working_ = false;
        changed_.notify_all();
    }
}

// Machines belong to whoever has set `working_`.
void FakeCluster::apply(const std::deque<Pending>& batch) {
    std::vector<Entry> entries;
    std::uint64_t first = this->entries();
    for (const Pending& pending : batch) {
        if (pending.read) continue;
        entries.push_back({{++first}, Ballot::of(1, leader_), 0, std::as_bytes(std::span(pending.command))});
    }
    if (entries.empty()) return;
    for (const auto& [id, replica] : replicas_) {
        Replies unwanted;
        Replies& replies = id == leader_ ? replies_ : unwanted;
        replies.begin(entries.size(), id == leader_);
        replica->machine.apply(entries, replies);
    }
    const std::lock_guard lock(mutex_);
    entries_ = first;
}

void FakeCluster::carry_out(std::deque<Pending> batch) {
    apply(batch);
    const Index applied{entries()};
    std::size_t place = 0;
    for (Pending& pending : batch) {
        Outcome outcome{Fate::applied, Reason::none, {}, applied, {}};
        if (!pending.read) outcome.reply = replies_.at(place++);
        pending.done(outcome);
    }
}

}  // namespace lockstep::counter
