// What a disk and a sender may do to snapshots: power lost at any operation, a full disk, failed operations, rot,
// pieces that are wrong. A snapshot is complete or absent, and what was held before stays held.
#include "tests/unit/snapshot/snapshot_world.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>

#include <xxhash.h>

namespace lockstep::replica {
namespace {

using log::ChunkBlock;
using log::DiskOperation;
using log::kSnapshotChunkBytes;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kStateBytes = 2 * kSnapshotChunkBytes + 500;

// A complete one's file, as a sender has it.
struct Sent {
    log::SnapshotName name;
    Bytes file;
    Bytes state;
};
Sent sent(std::uint64_t index, std::size_t bytes = kStateBytes) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    EXPECT_TRUE(world.load());
    Sent made{.name = {}, .file = {}, .state = random_bytes(bytes, index)};
    made.name = world.taken(index, made.state);
    made.file = world.file_of(made.name);
    return made;
}

// -- Power --------------------------------------------------------------------------------------------------------

// Takes one, receives another, and removes what is older than both; what was said to be durable goes to `durable`.
void workload(World& world, const Sent& other, std::map<std::uint64_t, log::SnapshotName>& durable) {
    const auto go_on = [&] {
        const auto found = world.outcomes();
        if (!found) return false;
        for (const SnapshotOutcome& outcome : found.value())
            if (outcome.kind == Kind::taken || outcome.kind == Kind::received)
                durable[outcome.name.at.index.value] = outcome.name;
        return true;
    };
    world.take(20, random_bytes(kStateBytes, 20), 40'000);
    if (!go_on()) return;
    world.store.receive(other.name);
    for (BytesView left = other.file; !left.empty();) {
        const BytesView piece = left.first(std::min<std::size_t>(40'000, left.size()));
        world.store.write_piece(piece);
        left = left.subspan(piece.size());
        if (!go_on()) return;
    }
    world.store.drop_older(Index{20});
    durable.erase(10);  // from now on it may be gone
    go_on();
}

TEST(SnapshotFaults, power_lost_at_any_operation_leaves_each_complete_or_absent) {
    const Sent other = sent(30);
    const auto start = [](log::SimDisk& disk, std::map<std::uint64_t, log::SnapshotName>& durable) {
        World world(disk);
        ASSERT_TRUE(world.load());
        durable[10] = world.taken(10, random_bytes(1000, 10));
    };
    std::uint64_t operations = 0;
    {
        log::SimDisk disk = make_sim_disk();
        std::map<std::uint64_t, log::SnapshotName> durable;
        start(disk, durable);
        operations = disk.operations();
        World world(disk);
        ASSERT_TRUE(world.load());
        workload(world, other, durable);
        operations = disk.operations() - operations;
        ASSERT_EQ(durable.size(), 2u);
    }
    ASSERT_GT(operations, 20u);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        for (std::uint64_t at = 0; at < operations; ++at) {
            SCOPED_TRACE("seed " + std::to_string(seed) + ", crash at operation " + std::to_string(at));
            log::SimDisk disk = make_sim_disk(seed);
            std::map<std::uint64_t, log::SnapshotName> durable;
            start(disk, durable);
            disk.crash_in(at);
            {
                World world(disk);
                if (world.load()) workload(world, other, durable);
            }
            ASSERT_TRUE(disk.crashed());
            disk.crash();
            World later(disk);
            ASSERT_TRUE(later.load());
            // A crash is no rot: nothing that once was complete has been damaged.
            EXPECT_THAT(later.store.damaged(), IsEmpty());
            EXPECT_EQ(files_on(disk).size(), later.store.held().size()) << "something is left that nobody holds";
            for (const SnapshotStore::Held& held : later.store.held()) {
                const std::uint64_t index = held.name.at.index.value;
                const std::size_t bytes = index == 10 ? 1000 : kStateBytes;
                const Bytes expected = index == 30 ? other.state : random_bytes(bytes, index);
                EXPECT_EQ(later.state_of(held.name).value(), expected);
                durable.erase(index);
            }
            for (const auto& [index, name] : durable) ADD_FAILURE() << "the one at " << index << " is gone";
            if (HasFailure()) return;
        }
    }
}

// -- A full disk, and one that fails --------------------------------------------------------------------------------

TEST(SnapshotFaults, disk_full_at_any_byte_ends_a_take_and_leaves_the_old_one) {
    const std::uint64_t whole = log::snapshot_bytes(kStateBytes);
    for (std::uint64_t room = 0; room <= whole; room += room < 1000 ? 197 : 29'973) {
        log::SimDisk disk = make_sim_disk();
        World world(disk);
        ASSERT_TRUE(world.load());
        const auto old = world.taken(10, random_bytes(100));
        disk.limit(world.file_of(old).size() + std::min(room, whole - 1));
        world.take(20, random_bytes(kStateBytes));
        const auto found = world.outcomes();
        ASSERT_TRUE(found) << found.error().message();
        ASSERT_EQ(found.value().size(), 1u);
        EXPECT_EQ(found.value()[0].kind, Kind::take_failed);
        EXPECT_THAT(found.value()[0].why, HasSubstr("No space left"));
        EXPECT_EQ(files_on(disk).size(), 1u);
        EXPECT_EQ(world.state_of(old).value(), random_bytes(100));
        // With room again, it goes on.
        disk.limit(~std::uint64_t{0});
        world.taken(20, random_bytes(kStateBytes));
        if (HasFailure()) return;
    }
}

TEST(SnapshotFaults, disk_full_at_the_receiver_is_found_before_the_first_piece) {
    const Sent other = sent(30);
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    disk.limit(other.file.size() - 1);
    const auto found = world.received(other.name, other.file).value();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, Kind::receive_failed);
    EXPECT_EQ(found[0].name, other.name);
    EXPECT_THAT(found[0].why, HasSubstr("No space left"));
    EXPECT_FALSE(world.store.receiving());
    EXPECT_THAT(files_on(disk), IsEmpty());
    disk.limit(~std::uint64_t{0});
    EXPECT_EQ(world.received(other.name, other.file).value().back().kind, Kind::received);
}

// Makes the number-th operation of that kind fail, by planning it right before.
class FailingDisk final : public log::Disk {
 public:
    explicit FailingDisk(log::SimDisk& disk) : disk_(disk) {}
    Result<void> perform(const DiskOperation& operation) override {
        if (operation.kind == kind && in-- == 0) disk_.fail_next(kind);
        return disk_.perform(operation);
    }
    Result<std::uint64_t> read(log::FileHandle file, std::uint64_t offset, std::span<std::byte> into) override {
        return disk_.read(file, offset, into);
    }
    Result<std::vector<log::FileInfo>> list() override { return disk_.list(); }

    DiskOperation::Kind kind = DiskOperation::Kind::close;
    int in = -1;

 private:
    log::SimDisk& disk_;
};

// What comes of a take and of a receive whose number-th operation of that kind fails: nothing if none did.
enum class Fate { no_failure, outcome, fatal };
Fate fate(DiskOperation::Kind kind, int number, bool receive, const Sent& other) {
    log::SimDisk sim = make_sim_disk();
    FailingDisk disk(sim);
    ManualBackground background;
    SnapshotStore store(disk, background, [] {});
    EXPECT_TRUE(store.load(false));
    disk.kind = kind;
    disk.in = number;
    if (receive) {
        store.receive(other.name);
        store.write_piece(other.file);
    } else {
        store.take(meta_at(20), std::make_unique<BytesState>(other.state, 40'000));
    }
    background.work_all();
    std::vector<SnapshotOutcome> outcomes;
    const bool fatal = !store.take_outcomes(outcomes);
    if (!sim.failed()) return Fate::no_failure;
    if (fatal) {
        // For ever, and nothing more is done.
        store.receive(sent(40, 10).name);
        const std::uint64_t before = sim.operations();
        background.work_all();
        EXPECT_EQ(sim.operations(), before);
        EXPECT_FALSE(store.take_outcomes(outcomes));
        return Fate::fatal;
    }
    EXPECT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes.at(0).kind, receive ? Kind::receive_failed : Kind::take_failed);
    EXPECT_FALSE(outcomes.at(0).why.empty());
    EXPECT_THAT(files_on(sim), IsEmpty());
    EXPECT_FALSE(store.taking());
    EXPECT_FALSE(store.receiving());
    return Fate::outcome;
}

TEST(SnapshotFaults, what_nobody_counts_on_may_fail_and_what_is_promised_may_not) {
    using Operation = DiskOperation::Kind;
    const std::map<Operation, Fate> expected = {
        {Operation::create, Fate::outcome}, {Operation::write, Fate::outcome},  {Operation::sync, Fate::fatal},
        {Operation::rename, Fate::fatal},   {Operation::sync_folder, Fate::fatal}};
    const Sent other = sent(30);
    for (const bool receive : {false, true}) {
        for (const auto& [kind, wanted] : expected) {
            int number = 0;
            for (Fate found; (found = fate(kind, number, receive, other)) != Fate::no_failure; ++number)
                EXPECT_EQ(found, wanted) << "operation " << static_cast<int>(kind) << ", number " << number;
            EXPECT_GE(number, 1) << "operation " << static_cast<int>(kind) << " never came";
        }
    }
}

TEST(SnapshotFaults, remove_that_fails_is_final) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    world.taken(10, random_bytes(10));
    disk.fail_next(DiskOperation::Kind::remove);
    world.store.drop_older(Index{11});
    EXPECT_FALSE(world.outcomes());
}

// -- Rot ------------------------------------------------------------------------------------------------------------

// The one with a bit in that byte turned over is refused by who receives it, by who reads it, and by who loads it.
void expect_found(const Sent& other, std::uint64_t at, unsigned bit) {
    SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(at));
    Bytes file = other.file;
    file[at] ^= static_cast<std::byte>(1u << bit);
    log::SimDisk disk = make_sim_disk();
    {
        World world(disk);
        ASSERT_TRUE(world.load());
        EXPECT_EQ(world.received(other.name, file).value().back().kind, Kind::receive_failed);
        EXPECT_THAT(files_on(disk), IsEmpty());
        ASSERT_EQ(world.received(other.name, other.file).value().back().kind, Kind::received);
        disk.put(snapshot_file_name(other.name), file);
        EXPECT_FALSE(world.state_of(other.name));
    }
    World world(disk);
    ASSERT_TRUE(world.load());
    EXPECT_THAT(world.store.held(), IsEmpty());
    ASSERT_EQ(world.store.damaged().size(), 1u);
    EXPECT_THAT(world.store.damaged()[0].why, HasSubstr(snapshot_file_name(other.name).c_str()));
    EXPECT_EQ(files_on(disk).size(), 1u);
    ASSERT_TRUE(world.store.remove_damaged());
    EXPECT_THAT(files_on(disk), IsEmpty());
}

TEST(SnapshotFaults, one_bit_anywhere_in_a_file_is_found) {
    std::mt19937_64 random(3);
    const Sent small = sent(30, 40);
    for (std::uint64_t at = 0; at < small.file.size() && !HasFailure(); ++at) expect_found(small, at, random() % 8);
    const Sent large = sent(31);
    for (std::uint64_t at = 0; at < large.file.size() && !HasFailure(); at += 8191)
        expect_found(large, at, random() % 8);
}

TEST(SnapshotFaults, no_state_is_handed_out_of_a_chunk_that_is_not_whole) {
    const Sent other = sent(30);
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    ASSERT_EQ(world.received(other.name, other.file).value().back().kind, Kind::received);
    disk.flip_bit(snapshot_file_name(other.name), log::chunk_offset(1) + 5000, 3);
    auto source = world.store.open(other.name);
    ASSERT_TRUE(source);
    Bytes first(kSnapshotChunkBytes);
    ASSERT_EQ(source.value()->read(first).value(), kSnapshotChunkBytes);
    EXPECT_TRUE(std::ranges::equal(first, BytesView(other.state).first(kSnapshotChunkBytes)));
    Bytes next(1);
    const auto got = source.value()->read(next);
    ASSERT_FALSE(got);
    EXPECT_THAT(got.error().message(), HasSubstr("chunk 1, at byte " + std::to_string(log::chunk_offset(1))));
}

TEST(SnapshotFaults, chunks_swapped_doubled_short_or_of_another_snapshot_are_found) {
    const Sent other = sent(30, 4 * kSnapshotChunkBytes);
    const Sent stale = sent(29, 4 * kSnapshotChunkBytes);
    constexpr std::size_t kWhole = sizeof(ChunkBlock) + kSnapshotChunkBytes;
    const auto at = [](Bytes& file, std::uint64_t number) {
        return file.begin() + static_cast<std::ptrdiff_t>(log::chunk_offset(number));
    };
    const BytesView from_second = BytesView(stale.file).subspan(log::chunk_offset(2));
    const std::map<std::string, std::function<void(Bytes&)>> edits = {
        {"swapped", [&](Bytes& file) { std::swap_ranges(at(file, 1), at(file, 1) + kWhole, at(file, 2)); }},
        {"doubled", [&](Bytes& file) { std::copy_n(at(file, 1), kWhole, at(file, 2)); }},
        {"left out", [&](Bytes& file) { file.erase(at(file, 2), at(file, 3)); }},
        {"inserted", [&](Bytes& file) {
             const Bytes chunk(at(file, 2), at(file, 3));
             file.insert(at(file, 3), chunk.begin(), chunk.end());
         }},
        {"short", [&](Bytes& file) { file.erase(at(file, 3) + 1000, at(file, 3) + 1001); }},
        {"cut at a chunk's end", [&](Bytes& file) { file.resize(log::chunk_offset(3)); }},
        {"stale", [&](Bytes& file) { std::ranges::copy(from_second.first(kWhole), at(file, 2)); }},
        {"stale from there on", [&](Bytes& file) { std::ranges::copy(from_second, at(file, 2)); }},
        {"with another's head", [&](Bytes& file) { std::copy_n(stale.file.begin(), 600, file.begin()); }},
        {"empty", [&](Bytes& file) { file.clear(); }},
    };
    for (const auto& [what, edit] : edits) {
        SCOPED_TRACE(what);
        Bytes file = other.file;
        edit(file);
        log::SimDisk disk = make_sim_disk();
        disk.put(snapshot_file_name(other.name), file);
        World world(disk);
        ASSERT_TRUE(world.load());
        EXPECT_THAT(world.store.held(), IsEmpty());
        EXPECT_EQ(world.store.damaged().size(), 1u);
        ASSERT_TRUE(world.store.remove_damaged());
        EXPECT_THAT(files_on(disk), IsEmpty());
        if (file.size() < other.file.size()) continue;  // it would go on waiting for the rest
        World receiver(disk);
        EXPECT_EQ(receiver.received(other.name, file).value().back().kind, Kind::receive_failed);
        EXPECT_THAT(files_on(disk), IsEmpty());
    }
}

TEST(SnapshotFaults, whole_file_under_anothers_name_is_none) {
    const Sent other = sent(30);
    const Sent stale = sent(29);
    log::SimDisk disk = make_sim_disk();
    disk.put(snapshot_file_name(other.name), stale.file);
    World world(disk);
    ASSERT_TRUE(world.load());
    EXPECT_THAT(world.store.held(), IsEmpty());
    World receiver(disk);
    EXPECT_EQ(receiver.received(other.name, stale.file).value().back().kind, Kind::receive_failed);
}

TEST(SnapshotFaults, name_with_a_size_that_cannot_be_is_refused_before_room_is_taken) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{100}, ~std::uint64_t{0}}) {
        world.store.receive({.at = meta_at(5).at, .bytes = bytes, .digest = 1});
        const auto found = world.outcomes().value();
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].kind, Kind::receive_failed);
        EXPECT_FALSE(world.store.receiving());
    }
}

TEST(SnapshotFaults, file_of_another_version_stays) {
    const Sent other = sent(30, 10);
    log::SimDisk disk = make_sim_disk();
    Bytes file = other.file;
    log::SnapshotHeadBlock head;
    std::memcpy(&head, file.data(), sizeof head);
    head.magic += std::uint64_t{1} << 56;
    head.checksum = XXH3_64bits_withSeed(&head, offsetof(log::SnapshotHeadBlock, checksum), head.genesis);
    std::memcpy(file.data(), &head, sizeof head);
    disk.put(snapshot_file_name(other.name), file);
    World world(disk);
    const auto loaded = world.load();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message(), HasSubstr("its format is version 2"));
    EXPECT_EQ(files_on(disk).size(), 1u);
}

}  // namespace
}  // namespace lockstep::replica
