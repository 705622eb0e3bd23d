#include "consensus/replica/data_folder.h"
#include "consensus/replica/mapped_memory.h"
#include "log/disk/folder_lock.h"
#include "log/disk/posix_disk.h"
#include "log/wal/recovery.h"

#include <lockstep/log_files.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

const char* name_of(log::EntryKind kind) {
    switch (kind) {
        case log::EntryKind::command: return "command";
        case log::EntryKind::no_op: return "no-op";
        case log::EntryKind::config: return "config";
        case log::EntryKind::pad: return "pad";
        case log::EntryKind::session: return "session";
    }
    return "?";
}

const char* name_of(log::Damage damage) {
    switch (damage) {
        case log::Damage::none: return "none";
        case log::Damage::suspect: return "suspect";
        case log::Damage::corrupt: return "corrupt";
    }
    return "?";
}

void count(LogSummary& summary, const log::VerifiedEntry& entry) {
    ++summary.entries;
    const std::uint64_t lap = entry.start.value & ~(summary.ring_bytes - 1);
    if (summary.segments.empty() || summary.segments.back().first.value != lap)
        summary.segments.push_back({.name = {}, .first = Position{lap}, .first_index = Index{entry.header.index}});
    LogSegment& segment = summary.segments.back();
    segment.last_index = Index{entry.header.index};
    ++segment.entries;
}

LogEntry shown(const log::VerifiedEntry& entry) {
    return {.index = Index{entry.header.index},
            .ballot = Ballot{entry.header.ballot},
            .commit = Index{entry.header.commit},
            .timestamp_ns = entry.header.timestamp_ns,
            .position = entry.start,
            .checksum = entry.header.checksum,
            .kind = name_of(entry.header.kind),
            .payload = entry.payload};
}

// The segments that are there, with what was counted while they were read.
std::vector<LogSegment> segments_of(const log::Recovered& recovered, const std::vector<LogSegment>& counted) {
    std::vector<LogSegment> segments;
    for (const log::Segment& there : recovered.segments) {
        LogSegment segment{.name = std::string(log::segment_name(recovered.hard.era, there.first).view()),
                           .bytes = log::segment_bytes(recovered.hard.ring_bytes),
                           .first = there.first};
        for (const LogSegment& read : counted) {
            if (read.first != there.first) continue;
            segment.first_index = read.first_index;
            segment.last_index = read.last_index;
            segment.entries = read.entries;
        }
        segments.push_back(std::move(segment));
    }
    return segments;
}

}  // namespace

Result<LogSummary> read_log(const std::string& folder, const ReadLogCalls& calls) {
    auto disk = log::PosixDisk::open_for_reading(replica::part_of_data_folder(folder, "log"));
    if (!disk) return std::move(disk).error();
    const auto within = [&](Error error) { return std::move(error).within("cannot read the log in " + folder); };
    auto hard = log::read_hard_state(*disk.value());
    if (!hard) return within(std::move(hard).error());
    if (!hard.value()) return within(Error("there is none; name the data_folder of a replica's config"));
    const log::HardState& state = hard.value()->state;
    auto memory = replica::MappedMemory::map(state.ring_bytes);
    if (!memory) return within(std::move(memory).error());
    log::Ring ring(memory.value().span());

    LogSummary summary;
    summary.ring_bytes = state.ring_bytes;
    log::RecoverOptions options;
    options.progress = calls.progress;
    options.visit = [&](const log::VerifiedEntry& entry) {
        count(summary, entry);
        if (calls.entry) calls.entry(shown(entry));
    };
    auto found = log::recover(*disk.value(), {state.cluster_id, state.replica, state.ring_bytes}, ring, options);
    if (!found) return within(std::move(found).error());
    const log::Recovered& recovered = *found.value();
    summary.cluster_id = recovered.hard.cluster_id;
    summary.replica = recovered.hard.replica;
    summary.incarnation = recovered.hard.incarnation;
    summary.promised = recovered.hard.promised;
    summary.base_index = recovered.hard.base.index;
    summary.base_position = recovered.hard.base.position;
    summary.last_index = recovered.end.index;
    summary.last_ballot = recovered.end.ballot;
    summary.end_position = recovered.end.position;
    summary.floor_position = std::max(recovered.floor.end.position, recovered.hard.floor);
    summary.segments = segments_of(recovered, summary.segments);
    summary.bytes_read = recovered.bytes_read;
    summary.damage = name_of(recovered.owed.damage);
    summary.where = recovered.story;
    return summary;
}

Result<void> adopt_data_folder(const std::string& folder) {
    auto lock = log::FolderLock::adopt(replica::part_of_data_folder(folder, "log"));
    if (!lock) return std::move(lock).error();
    return {};
}

}  // namespace lockstep
