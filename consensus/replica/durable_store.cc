#include "consensus/replica/durable_store.h"

#include "transport/logger.h"

#include <chrono>
#include <cstring>
#include <string>
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

}  // namespace

Result<std::unique_ptr<DurableStore>> DurableStore::open(const Options& options, StateMachine& state_machine,
                                                         Incarnation fresh) {
    auto formation = FormationFile::open(options);
    if (!formation) return std::move(formation).error();
    const std::string& data = options.data_folder;
    const std::string folder = data + "/log";
    auto disk = log::PosixDisk::open(folder);
    if (!disk) return std::move(disk).error();
    auto lock = log::FolderLock::take(folder);
    if (!lock) return std::move(lock).error();
    auto reading = log::PosixDisk::open(folder);
    if (!reading) return std::move(reading).error();
    auto snapshots = SnapshotFolder::open(data + "/snapshots", false);
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
    if (formed && !found.value())
        return Error("data folder " + data + " says that this replica is part of a cluster, but " + folder +
                     " holds no log: if its disk is lost, it must not come back as if it were not; the others go on "
                     "while they are a majority");
    if (!formed && found.value())
        return Error(folder + " holds a log, but " + data + " says of no cluster: it was copied in part, or is " +
                     "another's. Give this replica an empty data folder, or the whole of its own");
    if (formed && found.value()->core.genesis != formed->genesis)
        return Error("the log in " + folder + " is of another cluster than " + data + "/formation says");
    store->found_ = std::move(found).value();
    if (store->found_) {
        core::Recovered& core = store->found_->core;
        core.formed = formed->formed;
        store->incarnation_ = store->found_->log.hard.incarnation;
        if (!core.config.names({options.id, store->incarnation_}))
            return Error("the log in " + folder + " is none of the voters that " + data +
                         "/formation names: it was copied from somewhere else");
        logger().info("{}: came back with its log up to index {}, committed {}", to_string(options.id),
                      to_string(store->found_->log.end.index), to_string(core.commit.index));
        if (core.loss != core::Loss::none)
            logger().warn("{}: {}; until that is made up for, this replica {}", to_string(options.id),
                          store->found_->log.story,
                          core.loss == core::Loss::suspect ? "votes only where all voters do" : "does not vote");
    }
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
    thread_ = std::make_unique<DiskThread>(*disk_, [&fabric] { fabric.wake(); });
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
