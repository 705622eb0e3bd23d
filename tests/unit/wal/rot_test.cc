// A log that is damaged where it was acknowledged (S14): what is kept of it, what is given up and when, and that the
// loss is on disk all the while.
#include "tests/unit/wal/rot.h"

#include <vector>

namespace lockstep::log {
namespace {

// The segments' bytes that stand behind `from`.
std::vector<std::vector<std::byte>> rest_behind(WalWorld& world, Position from) {
    std::vector<std::vector<std::byte>> rest;
    const auto files = world.disk.list();
    for (const FileInfo& file : files.value()) {
        const auto name = parse_segment_name(file.name);
        if (!name || name->first + kRing <= from) continue;
        auto bytes = world.disk.contents(file.name);
        if (name->first < from)
            bytes.erase(bytes.begin(),
                        bytes.begin() + static_cast<std::ptrdiff_t>(kSegmentDataOffset + (from - name->first)));
        rest.push_back(std::move(bytes));
    }
    return rest;
}

struct Repair {
    Point lost;    // all below was acknowledged
    Point victim;  // before the entry that has rotted
};

// A replica has come back with rot in an old segment, and its leader begins to bring what was there.
Repair begin_repair(WalWorld& world) {
    fill(world, 3 * kRing);
    const Repair repair{world.tail, std::next(world.points.begin(), 10)->second};
    flip(world, repair.victim.position + 10);
    world.open(*world.recover_now());
    world.truncate(repair.victim);
    return repair;
}

// It may be all that is left of it, and can yet be read where the damage can be mended.
TEST(WalRot, rest_of_a_corrupt_log_stays_until_something_takes_its_place) {
    WalWorld world(1);
    fill(world, 3 * kRing);
    const Point lost = world.tail;
    const Point victim = std::next(world.points.begin(), 10)->second;
    flip(world, victim.position + 10);
    const auto rest = rest_behind(world, victim.position);
    ASSERT_GT(rest.size(), 2u);
    for (int starts = 0; starts < 3; ++starts) {
        const auto recovered = world.recover_now();
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered->found, Damage::corrupt);
        EXPECT_EQ(recovered->end, victim);
        EXPECT_EQ(recovered->owed, (Owed{Damage::corrupt, lost, recovered->hard.promised}));
        EXPECT_EQ(recovered->hard.owed.damage, starts == 0 ? Damage::none : Damage::corrupt);
        world.open(*recovered);
        world.promise();
        world.wal->commit(victim.index, true);
        EXPECT_FALSE(world.wal->release(victim.position));
        world.work_all();
        EXPECT_EQ(world.wal->kept().promised, Ballot{world.promised});
        EXPECT_EQ(rest_behind(world, victim.position), rest);
        world.disk.crash();
    }
    flip(world, victim.position + 10);  // back to what it was
    EXPECT_EQ(world.recover_now()->owed, Owed{});
    EXPECT_EQ(world.recover_now()->end, lost);
}

// Another leader's entries take the place of what is lost: wherever that is cut short, the loss is on disk, and what
// was intact is there.
TEST(WalRot, crash_at_every_operation_of_a_repair_keeps_the_loss_on_disk) {
    bool done = false;
    for (int operations = 0; !done; ++operations) {
        SCOPED_TRACE(operations);
        WalWorld world(1);
        const auto [lost, victim] = begin_repair(world);
        for (int entries = 0; entries < 3; ++entries) world.append_entry(20);
        world.hand_over();
        int left = operations;
        done = true;
        while (const DiskJob* const job = world.wal->next()) {
            for (const DiskOperation& operation : job->operations()) {
                if (left-- == 0) break;
                ASSERT_TRUE(world.disk.perform(operation));
            }
            if (left < 0) {
                done = false;
                break;
            }
            world.finish({});
        }
        world.disk.crash();
        const auto recovered = world.recover_now();
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered->owed, (Owed{Damage::corrupt, lost, {}}));
        EXPECT_GE(recovered->end.position, victim.position);
        EXPECT_GE(recovered->end.position, world.acknowledged.position);
        ASSERT_LT(operations, 200);
        world.open(*recovered);
        world.truncate(recovered->end);
        while (world.tail.position <= lost.position) {
            world.append_entry(20);
            world.hand_over();
            world.work_all();
        }
        EXPECT_EQ(world.wal->owed(), (Owed{Damage::corrupt, lost, {}})) << "of another chain nothing is paid back";
        world.wal->forgive();
        world.work_all();
        world.disk.crash();
        EXPECT_EQ(world.recover_now()->owed, Owed{});
        EXPECT_EQ(world.recover_now()->end, world.tail);
    }
}

// Of two damages that follow each other the loss goes as far as the further one did.
TEST(WalRot, second_rot_during_a_repair_adds_to_the_loss) {
    WalWorld world(1);
    const auto [lost, victim] = begin_repair(world);
    world.append_entry(20);
    world.hand_over();
    world.work_all();
    const Point first = std::next(world.points.begin(), 3)->second;
    flip(world, first.position + 10);
    const auto recovered = world.recover_now();
    EXPECT_EQ(recovered->found, Damage::corrupt);
    EXPECT_EQ(recovered->end, first);
    EXPECT_EQ(recovered->owed, (Owed{Damage::corrupt, lost, {}}));
}

// Below a durable snapshot a damage costs nothing: the chain goes on from the snapshot's point.
TEST(WalRot, log_that_is_damaged_below_a_snapshot_is_read_on_from_there) {
    for (const int behind : {1, 20, 60}) {  // entries, in the same lap or a later one
        SCOPED_TRACE(behind);
        WalWorld world(1);
        fill(world, 4 * kRing);
        flip(world, std::next(world.points.begin(), 10)->second.position + 10);
        const Point snapshot = std::next(world.points.begin(), 10 + behind)->second;
        TestRing fresh(kRing);
        Ring into = fresh.ring();
        RecoverOptions options;
        options.begin = snapshot;
        const auto recovered = recover(world.disk, identity_of(world.hard), into, options);
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered.value()->found, Damage::none);
        EXPECT_EQ(recovered.value()->base, snapshot);
        EXPECT_EQ(recovered.value()->end, world.tail);
        EXPECT_GE(recovered.value()->ring_from, snapshot.position);
        world.open(*recovered.value());
        world.work_all();
        world.disk.crash();
        const auto again = world.recover_now();
        EXPECT_EQ(again->hard.base, snapshot);
        EXPECT_EQ(again->found, Damage::none);
        EXPECT_EQ(again->end, world.tail);
        EXPECT_TRUE(again->leftovers.empty() || again->leftovers[0].name == kSpareName);
    }
}

// Where a break is found and the newest floor cannot be read, nobody knows how much was acknowledged behind it.
TEST(WalRot, loss_behind_an_unreadable_floor_has_no_known_end) {
    WalWorld world(1);
    fill(world, 3 * kRing + 1000);
    const std::uint64_t generation = world.recover_now()->floor.generation;
    world.disk.flip_bit(segment_of({3 * kRing}), floor_offset(generation) + 48, 2);
    flip(world, std::next(world.points.begin(), 10)->second.position + 10);
    const auto recovered = world.recover_now();
    EXPECT_EQ(recovered->found, Damage::corrupt);
    EXPECT_EQ(recovered->owed.end.position.value, kUnknown);
}

// One bad region at the start of the newest segment: its floors, and the first of its entries.
TEST(WalRot, newest_segment_without_a_readable_floor_is_corruption) {
    WalWorld world(1);
    fill(world, 3 * kRing + 1000);
    for (const std::uint64_t generation : {0u, 1u})
        world.disk.flip_bit(segment_of({3 * kRing}), floor_offset(generation) + 48, 2);
    flip(world, {3 * kRing + 10});
    const auto recovered = world.recover_now();
    EXPECT_EQ(recovered->found, Damage::corrupt);
    EXPECT_EQ(recovered->end.position, Position{3 * kRing});
    EXPECT_EQ(recovered->owed.end.position.value, kUnknown);
}

}  // namespace
}  // namespace lockstep::log
