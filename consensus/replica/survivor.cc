// The operator's way out when a majority is lost (S12): a config that names one survivor alone, at the end of its log.
#include <lockstep/survivor.h>

#include "consensus/core/config.h"
#include "consensus/replica/disk_worker.h"
#include "consensus/replica/mapped_memory.h"
#include "consensus/replica/wal_storage.h"
#include "log/disk/folder_lock.h"
#include "log/disk/posix_disk.h"
#include "log/wal/recovery.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

// Performs a WAL's jobs where it stands.
class DirectWorker final : public DiskWorker {
 public:
    explicit DirectWorker(log::Disk& disk) : disk_(disk) {}
    bool turn(log::Wal& wal) override {
        bool any = false;
        while (const log::DiskJob* job = wal.next()) {
            Result<void> outcome;
            for (const log::DiskOperation& operation : job->operations())
                if (outcome = disk_.perform(operation); !outcome) break;
            wal.finish(outcome);
            any = true;
        }
        return any;
    }

 private:
    log::Disk& disk_;
};

// The folder, locked, and what its log holds.
struct Opened {
    log::FolderLock lock;
    std::unique_ptr<log::PosixDisk> disk;
    replica::MappedMemory ring;
    log::Recovered log;
    core::Config config;
};

Result<Opened> open(const std::string& data_folder, const ReadProgress& progress) {
    const std::string folder = data_folder + "/log";
    // It would make what it does not find.
    if (auto there = log::PosixDisk::open_for_reading(folder); !there) return std::move(there).error();
    auto disk = log::PosixDisk::open(folder);
    if (!disk) return std::move(disk).error();
    auto hard = log::read_hard_state(*disk.value());
    if (!hard) return std::move(hard).error();
    if (!hard.value())
        return Error("there is no log: only a replica of durable mode can be what is left of a cluster");
    const log::HardState& state = hard.value()->state;
    auto lock = log::FolderLock::take(folder);
    if (!lock) return std::move(lock).error();
    auto ring = replica::MappedMemory::map(state.ring_bytes);
    if (!ring) return std::move(ring).error();
    core::Config config;
    log::RecoverOptions options;
    options.progress = progress;
    options.visit = [&](const log::VerifiedEntry& entry) {
        if (entry.header.kind == log::EntryKind::config)
            config = core::config_in(entry.payload, entry.end.index).config;
    };
    log::Ring view(ring.value().span());
    auto found = log::recover(*disk.value(), {state.cluster_id, state.replica, state.ring_bytes}, view, options);
    if (!found) return std::move(found).error();
    return Opened{std::move(lock).value(), std::move(disk).value(), std::move(ring).value(),
                  std::move(*found.value()), config};
}

const char* name_of(log::Damage damage) {
    return damage == log::Damage::none ? "none" : damage == log::Damage::suspect ? "suspect" : "corrupt";
}

Result<void> append_only_voter(Opened& opened) {
    const log::HardState& hard = opened.log.hard;
    auto copy = replica::MappedMemory::map(hard.ring_bytes);
    if (!copy) return std::move(copy).error();
    std::memcpy(copy.value().span().data(), opened.ring.span().data(), hard.ring_bytes);
    const log::Ring ring(opened.ring.span(), hard.genesis);
    if (auto settled = log::settle(*opened.disk, opened.log, ring); !settled) return settled;
    DirectWorker worker(*opened.disk);
    replica::WalStorage storage(ring, log::Ring(copy.value().span()), worker);
    storage.start(opened.log);
    // S1: a ballot of its own, promised to itself and to nobody else, as if it had led in it.
    const Ballot ballot = Ballot::of(std::max(hard.promised, opened.log.end.ballot).round() + 1, hard.replica);
    storage.keep_promise({1, ballot, hard.incarnation});
    core::Config config;
    config.voters.add({hard.replica, hard.incarnation});
    const std::string bytes = core::bytes_of(config);
    log::Point end = opened.log.end;
    log::append(ring, end, log::EntryKind::config,
                {ballot, std::min(opened.log.floor.committed, end.index), end.timestamp_ns},
                std::as_bytes(std::span(bytes)));
    storage.keep_log({1, opened.log.end, end, opened.log.floor.committed, true});
    // The worker has done all that there was to do; what it was is told now.
    std::vector<core::Event> outcomes;
    if (auto taken = storage.take_outcomes(outcomes); !taken) return taken;
    if (storage.wal().durable() != end || storage.wal().kept().promised != ballot)
        return Error("the log on disk does not take the entry; it was not changed in what it held");
    // S14: what it had lost itself is part of the loss that the operator has named; nobody is left to make up for it.
    storage.forgive();
    return storage.take_outcomes(outcomes);
}

}  // namespace

Result<Survivor> read_survivor(const std::string& data_folder, const ReadProgress& progress) {
    auto opened = open(data_folder, progress);
    if (!opened) return std::move(opened).error().within("cannot read the log in " + data_folder);
    const log::Recovered& log = opened.value().log;
    Survivor survivor{.cluster_id = log.hard.cluster_id,
                      .replica = log.hard.replica,
                      .incarnation = log.hard.incarnation,
                      .last_ballot = log.end.ballot,
                      .last_index = log.end.index,
                      .committed = std::max(log.floor.committed, log.hard.base.index),
                      .voters = {},
                      .damage = name_of(log.owed.damage)};
    for (const core::Voter& voter : opened.value().config.voters.all()) survivor.voters.push_back(voter.id);
    return survivor;
}

Result<void> make_only_voter(const std::string& data_folder, Index last_index, const ReadProgress& progress) {
    const std::string what = "cannot make the replica of " + data_folder + " the only voter";
    auto opened = open(data_folder, progress);
    if (!opened) return std::move(opened).error().within(what);
    const log::Recovered& log = opened.value().log;
    if (log.end.index != last_index)
        return Error("its log ends with index " + to_string(log.end.index) + ", not " + to_string(last_index) +
                     ": name the loss by the index behind which everything is lost")
            .within(what);
    if (log.found == log::Damage::corrupt)
        return Error("its log is damaged: " + log.story + ". Nothing was changed").within(what);
    if (auto done = append_only_voter(opened.value()); !done) return std::move(done).error().within(what);
    return {};
}

}  // namespace lockstep
