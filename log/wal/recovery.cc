#include "log/wal/recovery.h"

#include "log/planted.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace lockstep::log {

namespace {

// None of the WAL's own handles: a log can be looked at while it is written.
constexpr FileHandle kRecoveryFile = kMaxOpenFiles - 1;
constexpr FileHandle kNextFile = kMaxOpenFiles - 2;  // the segment behind it, so that the system reads ahead
constexpr std::uint64_t kReadBytes = 256 * 1024;  // verified while it is still in the cache

using BlockBytes = std::array<std::byte, kBlockBytes>;

bool all_zero(BytesView bytes) {
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Error foreign(const std::string& file, const std::string& what, const std::string& found, const std::string& expected) {
    return Error(file + " belongs to " + what + " " + found + ", not to " + expected +
                 ": this is another replica's data folder; name the right one in the config");
}

// What the blocks in front of a segment's bytes say.
struct Front {
    std::optional<SegmentHeader> header;
    std::optional<Floor> floor;
    bool unreadable_floor = false;
    std::vector<std::byte> bytes;  // as they were read
};

Result<Front> read_front(Disk& disk, FileHandle file, const FileName& name, const HardState& hard, Position first) {
    Front front;
    const std::string path(name.view());
    for (std::uint64_t number = 0; number < 3; ++number) {
        BlockBytes block{};
        auto got = disk.read(file, number * kBlockBytes, block);
        if (!got) return std::move(got).error();
        front.bytes.insert(front.bytes.end(), block.begin(), block.end());
        if (number == 0) {
            const auto header = segment_header_of(block);
            if (!header || header->era != hard.era || header->first != first) continue;
            if (header->cluster_id != hard.cluster_id || header->replica != hard.replica)
                return foreign(path, "replica", to_string(header->replica) + " of cluster " +
                               std::to_string(header->cluster_id), to_string(hard.replica) + " of cluster " +
                               std::to_string(hard.cluster_id));
            front.header = header;
            continue;
        }
        const auto placed = floor_of(block);
        if (!placed) {
            front.unreadable_floor |= !all_zero(block);
            continue;
        }
        // Of the segment's life before, when it was another lap: says nothing.
        if (placed->cluster_id != hard.cluster_id || placed->era != hard.era || placed->first != first) continue;
        if (!front.floor || placed->floor.generation > front.floor->generation) front.floor = placed->floor;
    }
    return front;
}

// One pass over the log.
class Reading {
 public:
    Reading(Disk& disk, const Ring& ring, const RecoverOptions& options, Recovered& found)
        : disk_(disk), ring_(ring), options_(options), found_(found), at_(found.base), read_to_(at_.position) {}

    Result<void> run();

 private:
    Result<void> read_fronts();
    // Verifies entries up to the segment's end, or to the break in it.
    Result<void> read_segment(const Segment& segment);
    Result<void> read_to(const Segment& segment, Position end);
    Position lap_before(Position at) const { return {std::max(at.value, ring_.bytes()) - ring_.bytes()}; }
    Result<void> restore_lap_before();
    void take(const VerifiedEntry& entry);
    void judge();
    void judge_floor(Position break_at);
    std::string place() const;

    Disk& disk_;
    const Ring& ring_;
    const RecoverOptions& options_;
    Recovered& found_;
    Point at_;
    Position read_to_;
    std::uint64_t total_ = 0;
    bool floor_unsure_ = false;  // the newest floor may be the one that cannot be read
    bool owed_paid_ = false;
};

Result<void> Reading::read_fronts() {
    for (auto segment = found_.segments.rbegin(); segment != found_.segments.rend(); ++segment) {
        const FileName name = segment_name(found_.hard.era, segment->first);
        if (auto opened = disk_.perform(DiskOperation::open(kRecoveryFile, name)); !opened) return opened;
        auto front = read_front(disk_, kRecoveryFile, name, found_.hard, segment->first);
        if (!front) return std::move(front).error();
        if (segment == found_.segments.rbegin()) found_.last_front = std::move(front.value().bytes);
        if (front.value().header) segment->start = front.value().header->start;
        else segment->start = Point{Index{kUnknown}, segment->first, 0, {}, 0};
        // Newest first: once a floor was read, those in front of it are older.
        if (found_.floor.generation == 0 && front.value().unreadable_floor) floor_unsure_ = true;
        if (const auto& floor = front.value().floor; floor && floor->generation > found_.floor.generation)
            found_.floor = *floor;
    }
    return {};
}

void Reading::take(const VerifiedEntry& entry) {
    at_ = entry.end;
    const Owed& owed = found_.hard.owed;
    if (owed.damage != Damage::none && at_.position == owed.end.position)
        owed_paid_ = at_.index == owed.end.index && at_.checksum == owed.end.checksum;
    if (options_.visit) options_.visit(entry);
}

Result<void> Reading::read_to(const Segment& segment, Position end) {
    const std::span<std::byte> into(ring_.at(read_to_), end - read_to_);
    auto got = disk_.read(kRecoveryFile, kSegmentDataOffset + (read_to_ - segment.first), into);
    if (!got) return std::move(got).error();
    // A file that is too short has nothing there, and the ring must not keep an older lap's bytes instead.
    std::ranges::fill(into.subspan(got.value()), std::byte{0});
    found_.bytes_read += got.value();
    read_to_ = end;
    if (options_.progress) options_.progress(found_.bytes_read, total_);
    return {};
}

// How many bytes from its start must be there to say whether it is an entry; 0: it is none.
std::uint64_t bytes_needed(const Ring& ring, const Point& at) {
    EntryHeader header;
    std::memcpy(&header, ring.at(at.position), sizeof header);
    if (header.index != at.index.value + 1) return 0;
    if (header.kind == EntryKind::pad) return kEntryAlignment;
    return std::min(entry_bytes(header.length), ring.geometry().max_entry_bytes);
}

Result<void> Reading::read_segment(const Segment& segment) {
    const Position end = segment.first + ring_.bytes();
    const FileName name = segment_name(found_.hard.era, segment.first);
    if (auto opened = disk_.perform(DiskOperation::open(kRecoveryFile, name)); !opened) return opened;
    read_to_ = at_.position;
    disk_.will_read(kRecoveryFile, kSegmentDataOffset + (at_.position - segment.first), end - at_.position);
    while (at_.position < end) {
        if (const auto entry = next_entry(ring_, at_, read_to_)) {
            take(*entry);
            continue;
        }
        const std::uint64_t there = read_to_ < at_.position ? 0 : read_to_ - at_.position;
        const std::uint64_t needed = there < kEntryAlignment ? kEntryAlignment : bytes_needed(ring_, at_);
        if (there >= needed || read_to_ == end) break;
        const Position wanted = at_.position + std::max(needed, kReadBytes);
        if (auto done = read_to(segment, std::min(wanted, end)); !done) return done;
    }
    return {};
}

// Reading ahead went past the end, over what the ring is to hold of the lap before.
Result<void> Reading::restore_lap_before() {
    const Position from = std::max(found_.base.position, lap_before(at_.position));
    const Position to = lap_before(read_to_);
    if (to <= from) return {};
    const Position first = ring_.lap_start(from);
    if (auto opened = disk_.perform(DiskOperation::open(kRecoveryFile, segment_name(found_.hard.era, first))); !opened)
        return opened;
    auto got = disk_.read(kRecoveryFile, kSegmentDataOffset + (from - first), {ring_.at(from), to - from});
    if (!got) return std::move(got).error();
    return {};
}

Result<void> Reading::run() {
    total_ = found_.segments.size() * ring_.bytes();
    if (auto read = read_fronts(); !read) return read;
    for (std::size_t number = 0; number < found_.segments.size(); ++number) {
        const Segment& segment = found_.segments[number];
        if (segment.first != ring_.lap_start(at_.position)) break;  // a gap, or a break in the segment before
        found_.segments[number].start = at_;
        if (number + 1 < found_.segments.size()) {
            const FileName next = segment_name(found_.hard.era, found_.segments[number + 1].first);
            if (disk_.perform(DiskOperation::open(kNextFile, next)))
                disk_.will_read(kNextFile, kSegmentDataOffset, ring_.bytes());
        }
        if (auto read = read_segment(segment); !read) return read;
    }
    if (auto restored = restore_lap_before(); !restored) return restored;
    for (const FileHandle file : {kRecoveryFile, kNextFile})
        static_cast<void>(disk_.perform(DiskOperation::close(file)));
    found_.end = at_;
    found_.ring_from = std::max(found_.base.position, lap_before(at_.position));
    judge();
    return {};
}

std::string Reading::place() const {
    const Position first = ring_.lap_start(at_.position);
    return std::string(segment_name(found_.hard.era, first).view()) + ", byte " +
           std::to_string(kSegmentDataOffset + (at_.position - first)) + " (position " + to_string(at_.position) +
           "): the entry with index " + to_string(at_.index.next()) + " does not verify";
}

void Reading::judge() {
    const Floor& floor = found_.floor;
    const Position kept = std::max(found_.hard.floor, found_.hard.base.position);
    const Position acknowledged = std::max(floor.end.position, kept);
    constexpr Point kNobodyKnows{Index{kUnknown}, Position{kUnknown}, 0, {}, 0};
    Owed& owed = found_.owed;
    if (at_.position >= acknowledged || LOCKSTEP_PLANTED(corruption_cut)) {
        if (floor_unsure_) {
            owed = {Damage::suspect, kNobodyKnows, {}};
            found_.story = "the newest segment's floor cannot be read: what was acknowledged behind position " +
                           to_string(at_.position) + " is not known";
        }
    } else {
        const bool last_batch = at_.position >= floor.begin && at_.position >= kept;
        owed.damage = last_batch ? Damage::suspect : Damage::corrupt;
        // Where the floor lags the hard state the newest one is lost, with its segment.
        owed.end = floor_unsure_ || floor.end.position < kept ? kNobodyKnows : floor.end;
        found_.story = place() + (last_batch ? ", though its batch was the last one to be written"
                                             : ", though it was acknowledged (everything below position " +
                                                   to_string(acknowledged) + " was)");
    }
    found_.found = owed.damage;
    if (owed.damage != Damage::none) owed.found_in = found_.hard.promised;
    // Of a life before, and not paid back since.
    const Owed& old = found_.hard.owed;
    if (old.damage != Damage::none && !owed_paid_) {
        owed.damage = std::max(owed.damage, old.damage);
        owed.found_in = std::max(owed.found_in, old.found_in);
        if (old.end.position > owed.end.position) owed.end = old.end;
        const bool known = old.end.position.value != kUnknown;
        if (found_.story.empty())
            found_.story = "what was lost " + (known ? "up to position " + to_string(old.end.position) + " " : "") +
                           "before an earlier start is not made up for yet";
    }
    if (found_.found != Damage::corrupt) return;
    found_.resume = owed.end;
    for (const Segment& segment : found_.segments)
        if (segment.start.index.value != kUnknown && segment.start.position > at_.position &&
            segment.start.position < found_.resume.position)
            found_.resume = segment.start;
}

}  // namespace

Result<std::optional<NumberedHardState>> read_hard_state(Disk& disk) {
    auto files = disk.list();
    if (!files) return std::move(files).error();
    bool there = false;
    std::string segment;
    for (const FileInfo& file : files.value()) {
        there |= file.name == kHardStateName;
        if (parse_segment_name(file.name)) segment = file.name.view();
    }
    if (!there) {
        if (segment.empty()) return std::optional<NumberedHardState>{};
        return Error("there is a log (" + segment + ") but no hard_state: what was promised is lost, and starting "
                     "without it could break a promise; restore the file, or empty the folder and let the replica "
                     "come back as a new one");
    }
    if (auto opened = disk.perform(DiskOperation::open(kRecoveryFile, kHardStateName)); !opened)
        return std::move(opened).error();
    std::optional<NumberedHardState> newest;
    for (std::uint64_t slot = 0; slot < 2; ++slot) {
        BlockBytes block{};
        auto got = disk.read(kRecoveryFile, hard_state_offset(slot), block);
        if (!got) return std::move(got).error();
        const auto state = hard_state_of(block);
        if (state && (!newest || state->sequence > newest->sequence)) newest = state;
    }
    if (!newest)
        return Error("neither slot of hard_state can be read (checksum): what was promised is lost, and starting "
                     "without it could break a promise; empty the folder and let the replica come back as a new one");
    return newest;
}

namespace {

// Whether the slot that does not count says the same as the one that does.
Result<bool> in_both_slots(Disk& disk, const NumberedHardState& newest) {
    BlockBytes block{};
    auto got = disk.read(kRecoveryFile, hard_state_offset(newest.sequence + 1), block);
    if (!got) return std::move(got).error();
    const auto other = hard_state_of(block);
    return other && other->state == newest.state;
}

Result<void> check_identity(const HardState& hard, const Identity& identity) {
    if (hard.cluster_id != identity.cluster_id)
        return foreign("hard_state", "cluster", std::to_string(hard.cluster_id), std::to_string(identity.cluster_id));
    if (hard.replica != identity.replica)
        return foreign("hard_state", "replica", to_string(hard.replica), to_string(identity.replica));
    if (hard.ring_bytes != identity.ring_bytes)
        return Error("the log was written with a ring of " + std::to_string(hard.ring_bytes) +
                     " bytes, the config says " + std::to_string(identity.ring_bytes) +
                     ": pads depend on it, so it cannot be changed; put the old size into the config");
    return {};
}

}  // namespace

Result<std::optional<Recovered>> recover(Disk& disk, const Identity& identity, Ring& ring,
                                         const RecoverOptions& options) {
    auto hard = read_hard_state(disk);
    if (!hard) return std::move(hard).error();
    if (!hard.value()) return std::optional<Recovered>{};
    auto both = in_both_slots(disk, *hard.value());
    if (!both) return std::move(both).error();
    Recovered found;
    found.hard = hard.value()->state;
    found.hard_sequence = hard.value()->sequence;
    found.hard_in_both_slots = both.value();
    if (auto fits = check_identity(found.hard, identity); !fits) return std::move(fits).error();
    LOCKSTEP_CHECK_OP(ring.bytes(), ==, found.hard.ring_bytes);
    ring.set_genesis(found.hard.genesis);
    found.base = options.begin.value_or(found.hard.base);

    auto files = disk.list();
    if (!files) return std::move(files).error();
    for (const FileInfo& file : files.value()) {
        const auto name = parse_segment_name(file.name);
        if (name && name->era == found.hard.era && name->first >= ring.lap_start(found.base.position) &&
            name->first == ring.lap_start(name->first))
            found.segments.push_back({name->first, {}});
        else if (name || file.name == kSpareName || file.name == kNewSpareName || file.name == kNewHardStateName)
            found.leftovers.push_back({file.name, false});
    }
    std::ranges::sort(found.segments, {}, [](const Segment& segment) { return segment.first.value; });
    if (auto read = Reading(disk, ring, options, found).run(); !read) return std::move(read).error();
    return std::optional<Recovered>(std::move(found));
}

// A batch goes to one segment, and the one before it is durable when it begins; so the last segment is all that can be
// behind, and the folder that names it; of that one, its front and what is behind the begin of the newest floor, which
// was written when all below was durable. It is written anew: where a sync has failed, the system may take for clean
// what never reached the disk, and a mere sync would say that all is well (Rebello et al., "Can Applications Recover
// from fsync Failures?", ATC 2020).
// Of what was read and verified, not of what a second look at the disk gives: such pages may be dropped at any time.
Result<void> settle(Disk& disk, const Recovered& recovered, const Ring& ring) {
    const auto write = [&](std::uint64_t at, BytesView bytes) {
        return disk.perform(DiskOperation::write(kRecoveryFile, at, bytes));
    };
    const auto open = [&](const FileName& name) { return disk.perform(DiskOperation::open(kRecoveryFile, name)); };
    const auto sync_and_close = [&]() -> Result<void> {
        if (auto synced = disk.perform(DiskOperation::sync(kRecoveryFile)); !synced) return synced;
        return disk.perform(DiskOperation::close(kRecoveryFile));
    };
    if (auto opened = open(kHardStateName); !opened) return opened;
    for (std::uint64_t slot = 0; slot < (recovered.hard_in_both_slots ? 2u : 1u); ++slot) {
        const std::uint64_t sequence = recovered.hard_sequence - slot;
        const HardStateBlock block = block_of(recovered.hard, sequence);
        if (auto written = write(hard_state_offset(sequence), std::as_bytes(std::span(&block, 1))); !written)
            return written;
    }
    if (auto synced = sync_and_close(); !synced) return synced;
    if (!recovered.segments.empty()) {
        const Position first = recovered.segments.back().first;
        const Position begin = std::max({first, recovered.floor.begin, recovered.base.position});
        if (auto opened = open(segment_name(recovered.hard.era, first)); !opened) return opened;
        if (auto written = write(0, recovered.last_front); !written) return written;
        if (begin < recovered.end.position) {
            const BytesView behind(ring.at(begin), recovered.end.position - begin);
            if (auto written = write(kSegmentDataOffset + (begin - first), behind); !written) return written;
        }
        if (auto synced = sync_and_close(); !synced) return synced;
    }
    return disk.perform(DiskOperation::sync_folder());
}

Result<void> patch(Disk& disk, const HardState& hard, Position at, BytesView bytes) {
    const Position first{at.value & ~(hard.ring_bytes - 1)};
    LOCKSTEP_CHECK_OP(at.value + bytes.size(), <=, first.value + hard.ring_bytes);
    const FileName name = segment_name(hard.era, first);
    auto files = disk.list();
    if (!files) return std::move(files).error();
    const bool there = std::ranges::any_of(files.value(), [&](const FileInfo& file) { return file.name == name; });
    const DiskOperation operations[] = {
        there ? DiskOperation::open(kRecoveryFile, name)
              : DiskOperation::create(kRecoveryFile, name, segment_bytes(hard.ring_bytes)),
        DiskOperation::write(kRecoveryFile, kSegmentDataOffset + (at - first), bytes),
        DiskOperation::sync(kRecoveryFile),
        DiskOperation::sync_folder(),
        DiskOperation::close(kRecoveryFile),
    };
    return perform_all(disk, operations);
}

Result<void> create_log(Disk& disk, const HardState& hard) {
    auto found = read_hard_state(disk);
    if (!found) return std::move(found).error();
    if (found.value()) return Error("the folder holds a hard_state already: a log is made once; name an empty folder");
    const HardStateBlock first = block_of(hard, 0);
    const HardStateBlock second = block_of(hard, 1);
    const DiskOperation operations[] = {
        DiskOperation::create(kRecoveryFile, kNewHardStateName, kHardStateBytes),
        DiskOperation::write(kRecoveryFile, hard_state_offset(0), std::as_bytes(std::span(&first, 1))),
        DiskOperation::write(kRecoveryFile, hard_state_offset(1), std::as_bytes(std::span(&second, 1))),
        DiskOperation::sync(kRecoveryFile),
        DiskOperation::rename(kNewHardStateName, kHardStateName),
        DiskOperation::sync_folder(),
        DiskOperation::close(kRecoveryFile),
    };
    return perform_all(disk, operations);
}

}  // namespace lockstep::log
