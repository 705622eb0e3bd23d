#include "consensus/replica/durable_store.h"

#include "transport/logger.h"

#include <chrono>
#include <filesystem>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace lockstep::replica {

namespace {

// Says now and then how far reading the log is.
class Progress {
 public:
    explicit Progress(ReplicaId id) : id_(id) {}
    void operator()(std::uint64_t done, std::uint64_t total) {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::seconds(1);
        logger().info("{}: reading its log: {} of {} MiB", to_string(id_), done >> 20, total >> 20);
    }

 private:
    ReplicaId id_;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

// The log of a life that is gone is kept for people to read, until the next one takes its place.
Result<void> set_aside(const std::string& folder) {
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) return {};
    auto lock = log::FolderLock::take(folder);
    if (!lock) return std::move(lock).error();
    std::filesystem::remove_all(folder + ".before", error);
    if (!error) std::filesystem::rename(folder, folder + ".before", error);
    if (error) return Error("cannot set " + folder + " aside as " + folder + ".before: " + error.message());
    return {};
}

// The replica has come back without them.
Result<void> drop_damaged(ReplicaId id, SnapshotStore& snapshots) {
    for (const SnapshotStore::Damaged& one : snapshots.damaged())
        logger().warn("{}: {}: it has rotted; this replica came back without it, and removes it", to_string(id),
                      one.why);
    return snapshots.remove_damaged();
}

}  // namespace

Result<std::unique_ptr<DurableStore>> DurableStore::open(const Options& options, StateMachine& state_machine,
                                                         Incarnation fresh) {
    auto formation = FormationFile::open(options, fresh);
    if (!formation) return std::move(formation).error();
    const std::string& data = options.data_folder;
    const std::string folder = data + "/log";
    // S12: what is on disk behind memory that is gone is nothing to come back with.
    const bool rejoins = options.durability == Durability::persist_async && formation.value().kept();
    if (rejoins)
        if (auto aside = set_aside(folder); !aside) return std::move(aside).error().within("data folder " + data);
    auto disk = log::PosixDisk::open(folder);
    if (!disk) return std::move(disk).error();
    auto lock = log::FolderLock::take(folder);
    if (!lock) return std::move(lock).error();
    auto reading = log::PosixDisk::open(folder);
    if (!reading) return std::move(reading).error();
    auto snapshots = SnapshotFolder::open(data + "/snapshots", rejoins);
    if (!snapshots) return std::move(snapshots).error();
    auto copy = MappedMemory::map(options.ring_bytes);
    if (!copy) return std::move(copy).error();
    copy.value().populate();
    std::unique_ptr<DurableStore> store(new DurableStore(
        options, std::move(formation).value(), std::move(lock).value(), std::move(disk).value(),
        std::move(reading).value(), std::move(copy).value(), std::move(snapshots).value(), fresh));
    const std::optional<KeptFormation>& formed = store->formation_.kept();
    auto found = replay(*store->disk_, store->identity_, log::Ring(store->copy_.span()),
                        formed ? formed->voters : core::Config{}, store->snapshots_->store(), state_machine,
                        Progress(options.id));
    if (!found) return std::move(found).error().within("data folder " + data);
    if (formed && !found.value() && !rejoins)
        return Error("data folder " + data + " says that this replica is part of a cluster, but " + folder +
                     " holds no log: if its disk is lost, it must not come back as if it were not. Give it an empty "
                     "data folder and start it with join (--join): the others take it in while they are a majority");
    if (!formed && found.value())
        return Error(folder + " holds a log, but " + data + " says of no cluster: it was copied in part, or is " +
                     "another's. Give this replica an empty data folder, or the whole of its own");
    if (found.value() && found.value()->core.genesis != formed->genesis)
        return Error("the log in " + folder + " is of another cluster than " + data + "/formation says");
    store->found_ = std::move(found).value();
    if (store->found_) {
        core::Recovered& core = store->found_->core;
        core.formed = formed->formed;
        store->incarnation_ = store->found_->log.hard.incarnation;
        const bool own = formed->life ? formed->life == store->incarnation_
                                      : formed->voters.names({options.id, store->incarnation_});
        if (!own)
            return Error("the log in " + folder + " is of another life of this replica than " + data +
                         "/formation: it was copied from somewhere else");
        logger().info("{}: came back with its log up to index {}, committed {}", to_string(options.id),
                      to_string(store->found_->log.end.index), to_string(core.commit.index));
        if (core.loss != core::Loss::none)
            logger().warn("{}: {}; until that is made up for, this replica {}", to_string(options.id),
                          store->found_->log.story,
                          core.loss == core::Loss::suspect ? "votes only where all voters do" : "does not vote");
    }
    if (auto dropped = drop_damaged(options.id, store->snapshots_->store()); !dropped)
        return std::move(dropped).error().within("data folder " + data);
    return store;
}

DurableStore::DurableStore(const Options& options, FormationFile formation, log::FolderLock lock,
                           std::unique_ptr<log::PosixDisk> disk, std::unique_ptr<log::PosixDisk> reading,
                           MappedMemory copy, std::unique_ptr<SnapshotFolder> snapshots, Incarnation fresh)
    : identity_{options.cluster_id, options.id, options.ring_bytes},
      formation_(std::move(formation)),
      lock_(std::move(lock)),
      disk_(std::move(disk)),
      reading_(std::move(reading)),
      copy_(std::move(copy)),
      incarnation_(fresh),
      snapshots_(std::move(snapshots)) {}

void DurableStore::attach(transport::Fabric& fabric) {
    auto queue = log::DiskQueue::make(*disk_, fabric.wake_descriptor());
    logger().debug("{}: its log is written by {}", to_string(identity_.replica), queue ? "io_uring" : "a thread");
    thread_ = std::make_unique<DiskThread>(*disk_, [&fabric] { fabric.wake(); }, std::move(queue));
    storage_ = std::make_unique<WalStorage>(log::Ring(fabric.ring()), log::Ring(copy_.span()), *thread_);
    reader_ = std::make_unique<WalReader>(*storage_, *reading_, snapshots_->background(),
                                          [folder = snapshots_.get()] { folder->wake(); });
    snapshots_->attach(fabric);
    if (!found_) return;
    std::memcpy(fabric.ring().data(), copy_.span().data(), copy_.span().size());
    storage_->start(found_->log);
}

void DurableStore::stop() { thread_.reset(); }

// The marker first (S7): a log without it is nobody's.
Result<void> DurableStore::keep(std::uint64_t genesis, const core::Config& voters, bool formed) {
    if (auto kept = formation_.keep(genesis, voters, formed); !kept || formed) return kept;
    log::HardState hard;
    hard.cluster_id = identity_.cluster_id;
    hard.replica = identity_.replica;
    hard.genesis = genesis;
    hard.ring_bytes = identity_.ring_bytes;
    hard.incarnation = incarnation_;
    hard.base = log::Point{{}, {}, genesis, {}, 0};
    if (auto created = log::create_log(*disk_, hard); !created) return created;
    log::Ring ring(copy_.span());
    auto recovered = log::recover(*disk_, identity_, ring);
    if (!recovered) return std::move(recovered).error();
    storage_->start(*recovered.value());
    return {};
}

}  // namespace lockstep::replica
