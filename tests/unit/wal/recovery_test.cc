// What recovery makes of files that are not as they should be: S14's three kinds, foreign and missing files, failed
// operations (S13).
#include "tests/unit/wal/rot.h"

#include <gmock/gmock.h>

namespace lockstep::log {
namespace {

using testing::HasSubstr;
using Kind = DiskOperation::Kind;

Result<std::optional<Recovered>> try_recover(WalWorld& world, const Identity& identity) {
    TestRing fresh(identity.ring_bytes);
    Ring into = fresh.ring();
    return recover(world.disk, identity, into);
}

std::string refusal(WalWorld& world, const Identity& identity) {
    const auto recovered = try_recover(world, identity);
    return recovered ? "none" : recovered.error().message();
}

TEST(WalRecovery, after_a_clean_end_finds_all_and_fills_the_ring) {
    WalWorld world(1);
    fill(world, 5 * kRing + 300);
    TestRing fresh(kRing);
    Ring into = fresh.ring();
    std::uint64_t reported = 0;
    RecoverOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_LE(done, total);
        reported = done;
    };
    const auto recovered = recover(world.disk, identity_of(world.hard), into, options);
    ASSERT_TRUE(recovered);
    ASSERT_TRUE(recovered.value());
    EXPECT_EQ(recovered.value()->end, world.tail);
    EXPECT_EQ(recovered.value()->found, Damage::none);
    EXPECT_EQ(recovered.value()->segments.size(), 6u);
    EXPECT_GT(reported, 5 * kRing - 1000);
    EXPECT_EQ(into.genesis(), kGenesis);
    // The newest entries are in the ring, as they were.
    for (const auto& [position, point] : world.points) {
        if (position < recovered.value()->ring_from.value || point == world.tail) continue;
        EXPECT_TRUE(next_entry(into, point, kNoLimit)) << position;
    }
    EXPECT_LE(recovered.value()->ring_from.value, world.tail.position.value - 300);
}

TEST(WalRecovery, of_an_empty_folder_finds_nothing) {
    SimDisk disk([](std::uint64_t) { return 0; });
    TestRing fresh(kRing);
    Ring into = fresh.ring();
    const auto recovered = recover(disk, Identity{77, ReplicaId{2}, kRing}, into);
    ASSERT_TRUE(recovered);
    EXPECT_FALSE(recovered.value());
}

TEST(WalRecovery, of_a_log_without_readable_hard_state_is_refused) {
    WalWorld world(1);
    fill(world, 1000);
    auto bytes = world.disk.contents(kHardStateName);
    for (const std::uint64_t slot : {0u, 1u}) world.disk.flip_bit(kHardStateName, slot * kBlockBytes + 40, 1);
    EXPECT_THAT(refusal(world, identity_of(world.hard)), HasSubstr("neither slot of hard_state can be read"));
    world.disk.put(kHardStateName, bytes);
    EXPECT_EQ(refusal(world, identity_of(world.hard)), "none");
    ASSERT_TRUE(world.disk.perform(DiskOperation::remove(kHardStateName)));
    EXPECT_THAT(refusal(world, identity_of(world.hard)), HasSubstr("no hard_state"));
}

TEST(WalRecovery, of_anothers_folder_is_refused_by_name) {
    WalWorld world(1);
    fill(world, 1000);
    EXPECT_THAT(refusal(world, {78, ReplicaId{2}, kRing}), HasSubstr("belongs to cluster 77, not to 78"));
    EXPECT_THAT(refusal(world, {77, ReplicaId{3}, kRing}), HasSubstr("belongs to replica r2, not to r3"));
    EXPECT_THAT(refusal(world, {77, ReplicaId{2}, 2 * kRing}), HasSubstr("ring of 2048 bytes, the config says 4096"));
    // One segment of another replica, put among the own ones.
    SegmentHeader header{77, ReplicaId{3}, kRing, 1, Position{0}, world.hard.base};
    const SegmentBlock block = block_of(header);
    auto bytes = world.disk.contents(segment_of({0}));
    std::memcpy(bytes.data(), &block, sizeof block);
    world.disk.put(segment_of({0}), bytes);
    EXPECT_THAT(refusal(world, identity_of(world.hard)), HasSubstr("belongs to replica r3 of cluster 77"));
}

// Rot in one slot never brings an older promise back.
TEST(WalRecovery, rot_in_either_slot_of_the_hard_state_leaves_the_promise) {
    for (const std::uint64_t slot : {0u, 1u}) {
        WalWorld world(1);
        world.promise();
        world.promise();
        world.work_all();
        world.disk.flip_bit(kHardStateName, slot * kBlockBytes + 60, 5);
        const auto recovered = world.recover_now();
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered->hard.promised, Ballot{2});
        EXPECT_EQ(recovered->hard.promised_to, Incarnation{6});
        EXPECT_FALSE(recovered->hard_in_both_slots);
    }
}

TEST(WalRecovery, flipped_bit_below_the_last_batch_is_corruption_and_says_where) {
    WalWorld world(1);
    fill(world, 3 * kRing);
    const Point victim = std::next(world.points.begin(), 10)->second;
    flip(world, victim.position + 10);
    const auto recovered = world.recover_now();
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered->found, Damage::corrupt);
    EXPECT_EQ(recovered->end, victim);
    EXPECT_EQ(recovered->owed.end, world.tail);
    EXPECT_EQ(recovered->resume.position, Position{kRing}) << "the next segment says what it starts behind";
    EXPECT_THAT(recovered->story, HasSubstr("wal-00000001-0000000000000000, byte " +
                                            std::to_string(kSegmentDataOffset + victim.position.value)));
}

TEST(WalRecovery, repaired_corruption_links_what_is_before_with_what_is_behind) {
    WalWorld world(1);
    fill(world, 3 * kRing);
    const auto good = world.disk.contents(segment_of({0}));
    const Point victim = std::next(world.points.begin(), 10)->second;
    flip(world, victim.position + 10);
    const auto broken = world.recover_now();
    ASSERT_TRUE(broken);
    const std::uint64_t from = kSegmentDataOffset + broken->end.position.value;
    const BytesView bytes = std::span(good).subspan(from, broken->resume.position - broken->end.position);
    ASSERT_TRUE(patch(world.disk, broken->hard, broken->end.position, bytes));
    world.disk.crash();
    const auto repaired = world.recover_now();
    ASSERT_TRUE(repaired);
    EXPECT_EQ(repaired->found, Damage::none);
    EXPECT_EQ(repaired->owed, Owed{});
    EXPECT_EQ(repaired->end, world.tail);
}

TEST(WalRecovery, flipped_bit_in_the_last_batch_is_suspect) {
    WalWorld world(1);
    fill(world, 3 * kRing);
    const Point before_last = std::prev(world.points.end(), 2)->second;
    flip(world, before_last.position + 10);
    const auto recovered = world.recover_now();
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered->found, Damage::suspect);
    EXPECT_EQ(recovered->end, before_last);
    EXPECT_EQ(recovered->owed, (Owed{Damage::suspect, world.tail, {}}));
}

// S14: whoever restarts once more is as suspect as before, until the chain is what it was, or it is forgiven.
TEST(WalRecovery, suspicion_outlives_restarts_until_the_chain_is_what_it_was) {
    WalWorld world(1);
    fill(world, 1000);
    const Point lost = world.tail;
    const Point before_last = std::prev(world.points.end(), 2)->second;
    const auto entry = world.ring.copy();
    flip(world, before_last.position + 10);
    for (int restarts = 0; restarts < 3; ++restarts) {
        const auto recovered = world.recover_now();
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered->owed, (Owed{Damage::suspect, lost, {}})) << restarts;
        EXPECT_EQ(recovered->found, restarts == 0 ? Damage::suspect : Damage::none);
        world.open(*recovered);
        EXPECT_EQ(world.wal->appended(), before_last);
        world.work_all();
        world.disk.crash();
    }
    world.restart();
    world.ring.restore(entry);
    ASSERT_EQ(world.wal->append(world.ring, lost.position), Taken::all);
    world.work_all();
    EXPECT_EQ(world.wal->owed(), Owed{});
    world.disk.crash();
    EXPECT_EQ(world.recover_now()->owed, Owed{});
}

TEST(WalRecovery, another_chain_at_the_lost_place_is_no_repayment_but_can_be_forgiven) {
    WalWorld world(1);
    fill(world, 1000);
    const Point before_last = std::prev(world.points.end(), 2)->second;
    flip(world, before_last.position + 10);
    world.open(*world.recover_now());
    world.work_all();
    world.truncate(before_last);
    world.append_entry(20);  // of the same size, another entry
    world.append_entry(20);
    world.hand_over();
    world.work_all();
    EXPECT_EQ(world.wal->owed().damage, Damage::suspect);
    EXPECT_EQ(world.recover_now()->owed.damage, Damage::suspect);
    world.wal->forgive();
    world.work_all();
    EXPECT_EQ(world.recover_now()->owed, Owed{});
}

TEST(WalRecovery, rot_in_the_newest_floor_makes_the_end_suspect) {
    WalWorld world(1);
    fill(world, 1000);
    const std::uint64_t generation = world.recover_now()->floor.generation;
    world.disk.flip_bit(segment_of({0}), floor_offset(generation) + 48, 2);
    const auto recovered = world.recover_now();
    EXPECT_EQ(recovered->found, Damage::suspect);
    EXPECT_EQ(recovered->end, world.tail) << "and nothing is lost";
    EXPECT_EQ(recovered->owed.end.index.value, kUnknown);
    world.open(*recovered);
    world.work_all();
    EXPECT_EQ(world.recover_now()->owed, recovered->owed);
}

// Floors of the life before never count for more than those of this one.
TEST(WalRecovery, floors_grow_over_a_restart) {
    WalWorld world(1);
    fill(world, 3 * kRing);
    world.restart();
    fill(world, 4 * kRing + 1000);
    const Point victim = world.points.lower_bound(4 * kRing + 100)->second;
    flip(world, victim.position + 10);
    EXPECT_EQ(world.recover_now()->found, Damage::corrupt);
}

TEST(WalRecovery, missing_segments_are_corruption) {
    for (const std::uint64_t lap : {0u, 1u, 2u, 3u}) {
        WalWorld world(1);
        fill(world, 3 * kRing + 500);  // the hard state knows a floor in each lap
        ASSERT_TRUE(world.disk.perform(DiskOperation::remove(segment_of({lap * kRing}))));
        const auto recovered = world.recover_now();
        EXPECT_EQ(recovered->found, Damage::corrupt) << lap;
        EXPECT_EQ(recovered->end.position, Position{lap * kRing});
        // With the last one the newest floor is gone: nobody knows how far it went.
        if (lap < 3) EXPECT_EQ(recovered->owed.end, world.acknowledged);
        else EXPECT_EQ(recovered->owed.end.position.value, kUnknown);
    }
}

TEST(WalRecovery, every_flipped_bit_of_a_file_is_seen_or_harmless) {
    WalWorld world(3);
    fill(world, kRing + 500, 1);
    world.promise();
    world.work_all();
    const auto files = world.disk.list();
    for (const FileInfo& file : files.value()) {
        if (file.name == kSpareName) continue;
        for (std::uint64_t at = 0; at < file.bytes; at += at % 4096 < 256 || at > kSegmentDataOffset ? 1 : 64) {
            world.disk.flip_bit(file.name, at, static_cast<unsigned>(at));
            const auto recovered = try_recover(world, identity_of(world.hard));
            ASSERT_TRUE(recovered) << recovered.error().message();
            // Either nothing acknowledged is missing, or it is said.
            if (recovered.value()->owed.damage == Damage::none) {
                ASSERT_EQ(recovered.value()->end, world.tail) << file.name.view() << " " << at;
            }
            ASSERT_EQ(recovered.value()->hard.promised, Ballot{1});
            world.disk.flip_bit(file.name, at, static_cast<unsigned>(at));
        }
    }
}

TEST(WalStops, at_the_first_failed_operation_for_good) {
    for (const Kind kind : {Kind::write, Kind::sync, Kind::rename, Kind::remove, Kind::sync_folder, Kind::create}) {
        WalWorld world(1);
        fill(world, 500);
        world.disk.fail_next(kind);
        const Point durable = world.wal->durable();
        for (int round = 0; round < 400 && !world.wal->stopped(); ++round) {
            world.append_entry(20);
            world.hand_over();
            if (round % 50 == 0) world.wal->release(world.wal->durable().position);
            while (!world.wal->stopped() && world.work()) continue;
        }
        ASSERT_TRUE(world.wal->stopped()) << static_cast<int>(kind);
        EXPECT_THAT(world.wal->stopped()->message(), HasSubstr("Input/output error"));
        const Point then = world.wal->durable();
        EXPECT_GE(then.position, durable.position);
        // The disk is well again; nothing is tried, nothing is acknowledged.
        const std::uint64_t operations = world.disk.operations();
        world.append_entry(20);
        world.wal->append(world.ring, world.tail.position);
        world.promise();
        EXPECT_EQ(world.wal->next(), nullptr);
        EXPECT_EQ(world.disk.operations(), operations);
        EXPECT_EQ(world.wal->durable(), then);
        EXPECT_NE(world.wal->kept().promised, Ballot{world.promised});
        world.disk.crash();
        EXPECT_GE(world.recover_now()->end.position, then.position);
    }
}

TEST(WalStops, when_the_disk_is_full) {
    WalWorld world(1);
    world.disk.limit(40'000);
    for (int round = 0; round < 400 && !world.wal->stopped(); ++round) {
        world.append_entry(20);
        world.hand_over();
        while (!world.wal->stopped() && world.work()) continue;
    }
    ASSERT_TRUE(world.wal->stopped());
    EXPECT_THAT(world.wal->stopped()->message(), HasSubstr("No space left on device"));
    EXPECT_EQ(world.recover_now()->end.position, world.wal->durable().position);
}

// A process whose fdatasync failed is started again, and reads what the system still has: not on disk, but taken for
// clean, and dropped from memory at any time. Whoever counts on it after `settle` finds it there when power is lost.
TEST(WalSettle, makes_durable_what_was_read_and_a_failed_sync_left_in_the_systems_memory) {
    for (const bool dropped : {false, true}) {
        int unsynced = 0;
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + (dropped ? ", dropped before it is settled" : ""));
            WalWorld world(seed);
            const auto batch = [&] {
                for (std::uint64_t entries = world.random() % 4; entries > 0; --entries) world.append_random();
                world.hand_over();
                return world.work();
            };
            for (std::uint64_t batches = world.random() % 40; batches > 0; --batches) batch();
            world.work_all();
            const Point durable = world.wal->durable();
            if (seed % 2 == 0) world.promise();
            world.disk.fail_next(Kind::sync);
            for (int batches = 0; batches < 100 && !world.wal->stopped(); ++batches) batch();
            ASSERT_TRUE(world.wal->stopped());

            TestRing memory(world.hard.ring_bytes);
            Ring ring = memory.ring();
            const auto recovered = recover(world.disk, identity_of(world.hard), ring).value();
            ASSERT_TRUE(recovered);
            if (dropped) world.disk.crash();
            const bool settled = settle(world.disk, *recovered, ring).ok();
            // This crash may take names away too, which no system does that goes on: the segment's.
            ASSERT_TRUE(settled || dropped);
            if (!settled) continue;
            if (recovered->end.position > durable.position || recovered->hard.promised != Ballot{}) ++unsynced;
            world.disk.crash();
            const auto again = world.recover_now();
            ASSERT_TRUE(again);
            ASSERT_EQ(again->end, recovered->end);
            ASSERT_EQ(again->hard.promised, recovered->hard.promised);
        }
        EXPECT_GT(unsynced, 50) << "there was hardly anything to make durable";
    }
}

TEST(WalGroupCommit, everything_that_gathered_takes_one_sync) {
    WalWorld world(1);
    fill(world, 300);
    const std::uint64_t syncs = world.disk.syncs();
    for (int count = 0; count < 8; ++count) {
        world.append_entry(0);
        world.hand_over();
    }
    world.work_all();
    EXPECT_EQ(world.disk.syncs(), syncs + 1);
    EXPECT_EQ(world.wal->durable(), world.tail);
}

TEST(WalAppend, is_durable_only_when_its_job_has_finished) {
    WalWorld world(1);
    world.work_all();
    world.append_entry(20);
    world.hand_over();
    const DiskJob* const job = world.wal->next();
    ASSERT_NE(job, nullptr);
    ASSERT_TRUE(perform_all(world.disk, job->operations()));
    EXPECT_EQ(world.wal->durable(), world.hard.base);
    EXPECT_EQ(world.wal->next(), nullptr) << "one job at a time";
    world.finish({});
    EXPECT_EQ(world.wal->durable(), world.tail);
}

TEST(WalAppend, of_bytes_that_do_not_verify_is_refused) {
    WalWorld world(1);
    world.append_entry(20);
    world.append_entry(20);
    world.ring.memory()[128 + 50] ^= std::byte{1};
    EXPECT_EQ(world.wal->append(world.ring, world.tail.position), Taken::broken);
    EXPECT_EQ(world.wal->appended().position, Position{128});
}

TEST(WalAppend, takes_no_more_than_a_ring_ahead_of_the_disk) {
    WalWorld world(1);
    Taken taken = Taken::all;
    for (int count = 0; count < 100 && taken == Taken::all; ++count) {
        world.append_entry(16);
        taken = world.wal->append(world.ring, world.tail.position);
    }
    EXPECT_EQ(taken, Taken::full);
    EXPECT_EQ(world.wal->appended().position, Position{kRing});
    world.work_all();
    EXPECT_EQ(world.wal->append(world.ring, world.tail.position), Taken::all);
}

// S8: the old write finishes before one to the same place is issued, and does not count for it.
TEST(WalTruncate, under_a_batch_in_flight_waits_for_it_and_counts_nothing_of_it) {
    WalWorld world(1);
    fill(world, 300);
    const Point before = world.tail;
    world.append_entry(20);
    world.hand_over();
    const DiskJob* const job = world.wal->next();
    ASSERT_NE(job, nullptr);
    world.truncate(before);
    world.append_entry(20);
    EXPECT_EQ(world.wal->append(world.ring, world.tail.position), Taken::full);
    ASSERT_TRUE(perform_all(world.disk, job->operations()));
    world.finish({});
    EXPECT_EQ(world.wal->durable(), before);
    world.hand_over();
    world.work_all();
    EXPECT_EQ(world.wal->durable(), world.tail);
    world.disk.crash();
    EXPECT_EQ(world.recover_now()->end, world.tail);
}

// S10: the floor on disk falls before anything is cut.
TEST(WalTruncate, lowers_the_floor_first_and_removes_segments_from_the_tail) {
    WalWorld world(1);
    fill(world, 4 * kRing);
    const Point at = std::next(world.points.begin(), 5)->second;
    world.truncate(at);
    EXPECT_EQ(world.wal->durable(), at);
    std::vector<std::string> removed;
    for (int jobs = 0; jobs < 100; ++jobs) {
        const DiskJob* const job = world.wal->next();
        if (job == nullptr) break;
        for (const DiskOperation& operation : job->operations()) {
            if (operation.kind != Kind::remove) continue;
            removed.emplace_back(operation.name.view());
            EXPECT_EQ(world.recover_now()->floor.end, at) << "before " << removed.back() << " goes";
        }
        world.finish(perform_all(world.disk, job->operations()));
    }
    ASSERT_GE(removed.size(), 3u);
    EXPECT_TRUE(std::ranges::is_sorted(removed, std::greater{}));
    EXPECT_EQ(world.recover_now()->end, at);
}

// A segment that cannot be removed stops the log (S13), and what is left is in one piece. (braft commit 3654ef8)
TEST(WalTruncate, that_cannot_remove_a_segment_stops_and_leaves_no_gap) {
    for (int before = 0; before < 3; ++before) {
        SCOPED_TRACE(std::to_string(before) + " segments are removed before");
        WalWorld world(1);
        fill(world, 4 * kRing);
        const Point at = std::next(world.points.begin(), 5)->second;
        world.truncate(at);
        for (int removed = 0; removed < before;) {
            const DiskJob* const job = world.wal->next();
            ASSERT_NE(job, nullptr);
            for (const DiskOperation& operation : job->operations()) removed += operation.kind == Kind::remove ? 1 : 0;
            world.finish(perform_all(world.disk, job->operations()));
        }
        world.disk.fail_next(Kind::remove);
        while (world.work()) continue;
        ASSERT_TRUE(world.wal->stopped());
        EXPECT_EQ(world.wal->durable(), at);
        world.disk.crash();
        const auto recovered = world.recover_now();
        ASSERT_TRUE(recovered);
        EXPECT_EQ(recovered->found, Damage::none) << recovered->story;
        EXPECT_GE(recovered->end.position, at.position);
        for (std::size_t number = 1; number < recovered->segments.size(); ++number)
            EXPECT_EQ(recovered->segments[number].first, recovered->segments[number - 1].first + kRing);
    }
}

TEST(WalRelease, drops_whole_segments_and_uses_one_again) {
    WalWorld world(1);
    fill(world, 4 * kRing + 100);
    world.wal->release(Position{3 * kRing + 10});
    world.work_all();
    EXPECT_EQ(world.wal->base().position, Position{3 * kRing});
    EXPECT_TRUE(world.disk.contents(segment_of({2 * kRing})).empty());
    EXPECT_FALSE(world.disk.contents(kSpareName).empty());
    world.restart();
    EXPECT_EQ(world.wal->appended(), world.tail);
    fill(world, 6 * kRing);
    world.disk.crash();
    EXPECT_EQ(world.recover_now()->end, world.tail);
}

TEST(WalPromise, comes_before_the_stream) {
    WalWorld world(1);
    world.work_all();
    world.append_entry(20);
    world.hand_over();
    world.promise();
    ASSERT_TRUE(world.work());
    EXPECT_EQ(world.wal->kept().promised, Ballot{1});
    EXPECT_EQ(world.wal->durable(), world.hard.base);
    EXPECT_DEATH(world.wal->promise(Ballot{0}, Incarnation{1}), "promised");
}

}  // namespace
}  // namespace lockstep::log
