// The public door: memory, a transport and a thread around a driver.
#include <lockstep/replica.h>

#include "consensus/replica/driver.h"
#include "consensus/replica/durable_store.h"
#include "consensus/replica/formation_file.h"
#include "consensus/replica/mapped_memory.h"
#include "consensus/replica/request_queue.h"
#include "consensus/replica/snapshot_folder.h"
#include "transport/logger.h"
#include "transport/rdma/fabric.h"
#include "transport/tcp/fabric.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep {

namespace {

class SystemClock final : public replica::Clock {
 public:
    core::Now now() override {
        using std::chrono::duration_cast;
        using std::chrono::nanoseconds;
        const auto ns = [](auto time) {
            return static_cast<std::uint64_t>(duration_cast<nanoseconds>(time.time_since_epoch()).count());
        };
        return {ns(std::chrono::steady_clock::now()), ns(std::chrono::system_clock::now())};
    }
};

Result<std::uint64_t> random_number() {
    std::uint64_t number = 0;
    while (number == 0)
        if (::getrandom(&number, sizeof number, 0) != sizeof number)
            return Error(std::string("the system gives no random numbers: ") + std::strerror(errno));
    return number;
}

// `address` was checked: it ends in ":port", and an IPv6 host stands in brackets.
std::pair<std::string, std::uint16_t> host_and_port(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    return {host, static_cast<std::uint16_t>(std::stoul(address.substr(colon + 1)))};
}

// What all transports over control links ask for.
transport::link::StationOptions station_options(const Options& options, Incarnation incarnation) {
    transport::link::StationOptions station;
    station.cluster_id = options.cluster_id;
    station.id = options.id;
    station.incarnation = incarnation;
    station.ring_bytes = options.ring_bytes;
    station.polling = options.polling;
    station.spin_us = options.spin_us;
    station.wakes_at_landing = options.durability == Durability::durable;
    for (const Member& member : options.members) {
        const auto [host, port] = host_and_port(member.address);
        if (member.id == options.id) {
            station.listen_host = host;
            station.listen_port = port;
        } else {
            station.peers.push_back({member.id, host, port});
        }
    }
    return station;
}

Result<std::unique_ptr<transport::Fabric>> open_over_tcp(const transport::link::StationOptions& station) {
    auto fabric = transport::tcp::TcpFabric::open(station);
    if (!fabric) return std::move(fabric).error();
    return std::unique_ptr<transport::Fabric>(std::move(fabric).value());
}

Result<std::unique_ptr<transport::Fabric>> open_fabric(const Options& options, Incarnation incarnation) {
    const transport::link::StationOptions station = station_options(options, incarnation);
    if (options.transport == Transport::tcp) return open_over_tcp(station);
    const bool either = options.transport == Transport::automatic;
    auto fabric = transport::rdma::RdmaFabric::open({station, options.rdma_device, static_cast<int>(options.rdma_port),
                                                     options.rdma_gid_index, either});
    if (fabric) return std::unique_ptr<transport::Fabric>(std::move(fabric).value());
    if (!either) return std::move(fabric).error();
    logger().debug("{}: TCP only: {}", to_string(options.id), fabric.error().message());
    return open_over_tcp(station);
}

core::CoreOptions core_options(const Options& options, const std::optional<replica::KeptFormation>& formed,
                               Incarnation incarnation, std::uint64_t random_seed) {
    core::CoreOptions core;
    core.id = options.id;
    core.incarnation = incarnation;
    std::vector<Member> members = options.members;
    std::ranges::sort(members, [](const Member& a, const Member& b) {
        return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
    });
    for (const Member& member : members) core.members[core.member_count++] = member.id;
    core.form = options.form && !formed;  // S7: once
    core.rejoins = formed ? formed->genesis : 0;
    core.election_timeout_ns = std::uint64_t{options.election_timeout_ms} * 1'000'000;
    core.heartbeat_ns = std::uint64_t{options.heartbeat_ms} * 1'000'000;
    core.random_seed = random_seed;
    core.durability = options.durability;
    return core;
}

// What a replica has on disk, by its durability: the marker of its formation, or that and its log; and snapshots.
struct Kept {
    std::unique_ptr<replica::FormationFile> marker;
    std::unique_ptr<replica::SnapshotFolder> snapshots;  // beside the marker
    std::unique_ptr<replica::DurableStore> durable;

    replica::FormationStore& formation() {
        if (durable) return *durable;
        return *marker;
    }
    const std::optional<replica::KeptFormation>& formed() const { return durable ? durable->formed() : marker->kept(); }
    replica::SnapshotStore& snapshot_store() {
        return durable ? durable->snapshots().store() : snapshots->store();
    }
    replica::Storage* storage() { return durable ? &durable->storage() : nullptr; }
    replica::LogSource* wal() { return durable ? &durable->wal() : nullptr; }
    const core::Recovered* recovered() const { return durable ? durable->recovered() : nullptr; }
    void attach(transport::Fabric& fabric) {
        if (durable) durable->attach(fabric);
        else snapshots->attach(fabric);
    }
    void stop() {
        if (durable) durable->stop();
    }
};

Result<Kept> open_kept(const Options& options, StateMachine& state_machine, Incarnation fresh) {
    if (options.durability == Durability::memory) {
        auto marker = replica::FormationFile::open(options, fresh);
        if (!marker) return std::move(marker).error();
        // Those of a life that has lost its memory are of no use: what they hold is not what this one has (S12).
        auto snapshots = replica::SnapshotFolder::open(options.data_folder + "/snapshots", true);
        if (!snapshots) return std::move(snapshots).error();
        return Kept{std::make_unique<replica::FormationFile>(std::move(marker).value()),
                    std::move(snapshots).value(), nullptr};
    }
    auto durable = replica::DurableStore::open(options, state_machine, fresh);
    if (!durable) return std::move(durable).error();
    return Kept{nullptr, nullptr, std::move(durable).value()};
}

}  // namespace

class Replica::Impl {
 public:
    Impl(const Options& options, const core::CoreOptions& core, std::unique_ptr<transport::Fabric> fabric,
         replica::MappedMemory scratch, Kept kept, StateMachine& state_machine)
        : heartbeat_ns_(core.heartbeat_ns),
          fabric_(std::move(fabric)),
          scratch_(std::move(scratch)),
          kept_(std::move(kept)),
          queue_(options.max_queued_proposals, options.max_queued_bytes),
          driver_(core, {options.snapshot_bytes, options.snapshot_entries}, *fabric_, scratch_.span(),
                  {.cluster_id = options.cluster_id,
                   .state_machine = state_machine,
                   .queue = queue_,
                   .clock = clock_,
                   .formation = kept_.formation(),
                   .snapshots = kept_.snapshot_store(),
                   .storage = kept_.storage(),
                   .wal = kept_.wal(),
                   .recovered = kept_.recovered()}) {
        keep_status();
        thread_ = std::thread([this] { run(); });
    }

    ~Impl() { stop(); }

    void propose(BytesView command, Done&& done) {
        const bool by_callback = on_protocol_thread();
        if (by_callback && driver_.propose_at_once(command, done)) return;
        answer(queue_.push_proposal(command, done), done, by_callback);
    }

    void read(Done&& done) { answer(queue_.push_read(done), done, on_protocol_thread()); }

    void take_snapshot(SnapshotTaken&& done) {
        {
            const std::lock_guard lock(asked_mutex_);
            if (!closed_) {
                asked_.push_back(std::move(done));
                fabric_->wake();
                return;
            }
        }
        done(Error("the replica has stopped"));
    }

    Status status() const {
        const std::lock_guard lock(status_mutex_);
        return status_;
    }

    void stop() {
        const std::lock_guard lock(stop_mutex_);
        if (!thread_.joinable()) return;
        stopping_.store(true, std::memory_order_relaxed);
        fabric_->wake();
        thread_.join();
    }

 private:
    using Pushed = replica::RequestQueue::Pushed;

    bool on_protocol_thread() const {
        return std::this_thread::get_id() == protocol_thread_.load(std::memory_order_relaxed);
    }

    void answer(Pushed pushed, const Done& done, bool by_callback) {
        switch (pushed) {
            case Pushed::taken:
                // The protocol thread looks into the queue by itself before it sleeps.
                if (!by_callback) fabric_->wake();
                return;
            case Pushed::full:
                return done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
            case Pushed::closed:
                return done(Outcome{Fate::rejected, Reason::stopped, {}, {}, {}});
        }
    }

    void run() {
        protocol_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        std::string why = "stopped";
        while (!stopping_.load(std::memory_order_relaxed)) {
            if (auto turned = driver_.turn(driver_.patience()); !turned) {
                why = turned.error().message();
                logger().critical("{} stops: {}", to_string(driver_.status().id), why);
                break;
            }
            keep_status_if_due();
            hand_over_asked(false);
        }
        hand_over_asked(true);
        driver_.stop();
        kept_.stop();
        keep_status();
        const std::lock_guard lock(status_mutex_);
        status_.role = Role::stopped;
        status_.note = why;
    }

    // Requests for snapshots to the driver; the last ones with `closing`.
    void hand_over_asked(bool closing) {
        std::vector<SnapshotTaken> asked;
        {
            const std::lock_guard lock(asked_mutex_);
            closed_ = closing;
            asked.swap(asked_);
        }
        for (SnapshotTaken& done : asked) driver_.take_snapshot(std::move(done));
    }

    void keep_status_if_due() {
        const core::Core& core = driver_.core();
        const bool changed = core.role() != shown_role_ || core.leader() != shown_leader_ ||
                             core.promised() != shown_ballot_;
        if (changed) {
            shown_role_ = core.role();
            shown_leader_ = core.leader();
            shown_ballot_ = core.promised();
            const Status status = driver_.status();
            logger().info("{}: {} in ballot {}, leader {}", to_string(status.id), to_string(status.role),
                         to_string(status.ballot), status.leader ? to_string(status.leader) : "unknown");
        }
        // The deadline is the next heartbeat at the latest, so this comes round at least that often.
        const std::uint64_t now_ns = clock_.now().monotonic_ns;
        if (changed || now_ns >= status_due_ns_) {
            status_due_ns_ = now_ns + heartbeat_ns_;
            keep_status();
        }
    }

    void keep_status() {
        Status status = driver_.status();
        const std::lock_guard lock(status_mutex_);
        status_ = std::move(status);
    }

    const std::uint64_t heartbeat_ns_;
    SystemClock clock_;
    std::unique_ptr<transport::Fabric> fabric_;
    replica::MappedMemory scratch_;
    Kept kept_;
    replica::RequestQueue queue_;
    replica::Driver driver_;

    Role shown_role_ = Role::stopped;
    ReplicaId shown_leader_;
    Ballot shown_ballot_;
    std::uint64_t status_due_ns_ = 0;

    mutable std::mutex status_mutex_;
    Status status_;  // under it

    std::mutex asked_mutex_;
    std::vector<SnapshotTaken> asked_;  // under it
    bool closed_ = false;               // under it: nobody will look any more

    std::mutex stop_mutex_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::thread::id> protocol_thread_{};
    std::thread thread_;
};

Result<std::unique_ptr<Replica>> Replica::open(const Options& options, StateMachine& state_machine) {
    if (auto checked = options.check(); !checked) return std::move(checked).error().within("bad options");
    const std::string what = "cannot start replica " + to_string(options.id);
    auto incarnation = random_number();
    if (!incarnation) return std::move(incarnation).error().within(what);
    auto seed = random_number();
    if (!seed) return std::move(seed).error().within(what);
    auto scratch = replica::MappedMemory::map(options.ring_bytes);
    if (!scratch) return std::move(scratch).error().within(what);
    auto kept = open_kept(options, state_machine, Incarnation{incarnation.value()});
    if (!kept) return std::move(kept).error().within(what);
    const Incarnation life =
        kept.value().durable ? kept.value().durable->incarnation() : Incarnation{incarnation.value()};
    auto fabric = open_fabric(options, life);
    if (!fabric) return std::move(fabric).error().within(what);
    kept.value().attach(*fabric.value());
    const core::CoreOptions core = core_options(options, kept.value().formed(), life, seed.value());
    return std::unique_ptr<Replica>(new Replica(std::make_unique<Impl>(
        options, core, std::move(fabric).value(), std::move(scratch).value(),
        std::move(kept).value(), state_machine)));
}

Replica::Replica(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replica::~Replica() = default;

void Replica::propose(BytesView command, Done done) { impl_->propose(command, std::move(done)); }
void Replica::read(Done done) { impl_->read(std::move(done)); }
void Replica::take_snapshot(SnapshotTaken done) { impl_->take_snapshot(std::move(done)); }
Status Replica::status() const { return impl_->status(); }
void Replica::stop() { impl_->stop(); }

}  // namespace lockstep
