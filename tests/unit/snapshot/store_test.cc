// A replica's snapshots: taken, kept, handed out, received, and read back.
#include "tests/unit/snapshot/snapshot_world.h"

#include <gmock/gmock.h>

namespace lockstep::replica {
namespace {

using log::kSnapshotChunkBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SnapshotStore, what_was_taken_is_read_back_whatever_its_size) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{kSnapshotChunkBytes - 1},
                                    std::size_t{kSnapshotChunkBytes}, std::size_t{kSnapshotChunkBytes + 1},
                                    std::size_t{3 * kSnapshotChunkBytes}}) {
        log::SimDisk disk = make_sim_disk();
        World world(disk);
        ASSERT_TRUE(world.load());
        const Bytes state = random_bytes(bytes);
        const auto name = world.taken(5, state);
        EXPECT_EQ(name.at, meta_at(5).at);
        EXPECT_EQ(name.bytes, world.file_of(name).size());
        EXPECT_EQ(world.state_of(name).value(), state);
        EXPECT_GE(world.wakes, 1);

        World later(disk);
        ASSERT_TRUE(later.load());
        ASSERT_EQ(later.store.held().size(), 1u);
        EXPECT_EQ(later.store.held()[0].name, name);
        EXPECT_EQ(later.store.held()[0].meta, meta_at(5));
        EXPECT_EQ(later.state_of(name).value(), state);
    }
}

TEST(SnapshotStore, equal_states_make_equal_files_however_they_are_written) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    const Bytes state = random_bytes(200'000);
    const auto first = world.taken(5, state);
    const Bytes file = world.file_of(first);
    world.take(5, state, 123'456);
    EXPECT_EQ(world.outcomes().value().at(0).name, first);
    EXPECT_EQ(world.file_of(first), file);
    EXPECT_EQ(world.store.held().size(), 1u);
}

TEST(SnapshotStore, nothing_is_written_before_the_background_works) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    world.take(5, random_bytes(10));
    EXPECT_TRUE(world.store.taking());
    EXPECT_THAT(files_on(disk), IsEmpty());
    ASSERT_TRUE(world.outcomes());
    EXPECT_FALSE(world.store.taking());
}

TEST(SnapshotStore, pieces_of_one_make_the_same_one_elsewhere) {
    log::SimDisk disk = make_sim_disk();
    World sender(disk);
    ASSERT_TRUE(sender.load());
    const Bytes state = random_bytes(300'000);
    const auto name = sender.taken(9, state);

    log::SimDisk other_disk = make_sim_disk();
    World receiver(other_disk);
    ASSERT_TRUE(receiver.load());
    receiver.store.receive(name);
    EXPECT_EQ(receiver.store.receiving(), name);
    while (receiver.store.receiving()) {
        const std::uint64_t at = receiver.store.received();
        sender.store.read_piece(ReplicaId{3}, name, at, ~std::uint64_t{0});
        auto pieces = sender.outcomes().value();
        ASSERT_EQ(pieces.size(), 1u);
        EXPECT_EQ(pieces[0].kind, Kind::piece_read);
        EXPECT_EQ(pieces[0].peer, ReplicaId{3});
        EXPECT_EQ(pieces[0].offset, at);
        ASSERT_FALSE(pieces[0].bytes.empty());
        EXPECT_LE(pieces[0].bytes.size(), SnapshotStore::kMaxPieceBytes);
        receiver.store.write_piece(pieces[0].bytes);
        auto written = receiver.outcomes().value();
        ASSERT_EQ(written.size(), 1u);
        EXPECT_EQ(written[0].offset, at + pieces[0].bytes.size());
        EXPECT_EQ(written[0].kind, written[0].offset == name.bytes ? Kind::received : Kind::piece_written);
    }
    ASSERT_EQ(receiver.store.held().size(), 1u);
    EXPECT_EQ(receiver.store.held()[0].meta, meta_at(9));
    EXPECT_EQ(receiver.state_of(name).value(), state);
    EXPECT_EQ(receiver.file_of(name), sender.file_of(name));
}

TEST(SnapshotStore, piece_of_one_that_is_gone_is_empty) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    const auto name = world.taken(9, random_bytes(10));
    world.taken(10, random_bytes(10));
    world.store.drop_older(Index{10});
    world.store.read_piece(ReplicaId{1}, name, 0, 100);
    const auto found = world.outcomes().value();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].bytes, IsEmpty());
    EXPECT_EQ(files_on(disk).size(), 1u);
    EXPECT_FALSE(world.store.open(name));
    EXPECT_EQ(world.store.held().size(), 1u);
}

TEST(SnapshotStore, another_one_takes_the_place_of_what_is_received) {
    log::SimDisk disk = make_sim_disk();
    World sender(disk);
    ASSERT_TRUE(sender.load());
    const auto first = sender.taken(9, random_bytes(100'000, 1));
    const auto second = sender.taken(10, random_bytes(100'000, 2));

    log::SimDisk other_disk = make_sim_disk();
    World receiver(other_disk);
    ASSERT_TRUE(receiver.load());
    receiver.store.receive(first);
    receiver.store.write_piece(BytesView(sender.file_of(first)).first(1000));
    const auto found = receiver.received(second, sender.file_of(second)).value();
    EXPECT_EQ(found.back().kind, Kind::received);
    for (const SnapshotOutcome& outcome : found) EXPECT_EQ(outcome.name, second) << "an outcome of what was dropped";
    EXPECT_EQ(receiver.state_of(second).value(), random_bytes(100'000, 2));
    EXPECT_THAT(files_on(other_disk), ElementsAre(snapshot_file_name(second).view()));
}

TEST(SnapshotStore, receiving_goes_on_where_it_stands) {
    log::SimDisk disk = make_sim_disk();
    World sender(disk);
    ASSERT_TRUE(sender.load());
    const auto name = sender.taken(9, random_bytes(100'000));
    const Bytes file = sender.file_of(name);

    log::SimDisk other_disk = make_sim_disk();
    World receiver(other_disk);
    ASSERT_TRUE(receiver.load());
    receiver.store.receive(name);
    receiver.store.write_piece(BytesView(file).first(30'000));
    receiver.store.receive(name);  // from another leader
    EXPECT_EQ(receiver.store.received(), 30'000u);
    receiver.store.write_piece(BytesView(file).subspan(30'000));
    EXPECT_EQ(receiver.outcomes().value().back().kind, Kind::received);
}

TEST(SnapshotStore, none_counts_removes_all) {
    log::SimDisk disk = make_sim_disk();
    World(disk).taken(9, random_bytes(10));
    World world(disk);
    ASSERT_TRUE(world.load(true));
    EXPECT_THAT(world.store.held(), IsEmpty());
    EXPECT_THAT(files_on(disk), IsEmpty());
}

TEST(SnapshotStore, the_newest_is_first) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    for (const std::uint64_t index : {5u, 300u, 7u}) world.taken(index, random_bytes(10));
    World later(disk);
    ASSERT_TRUE(later.load());
    for (const World* each : {&world, &later}) {
        ASSERT_EQ(each->store.held().size(), 3u);
        EXPECT_EQ(each->store.held()[0].name.at.index, Index{300});
        EXPECT_EQ(each->store.held()[2].name.at.index, Index{5});
    }
}

TEST(SnapshotStore, view_that_fails_leaves_nothing) {
    class Failing final : public SnapshotView {
        Result<void> write(SnapshotSink& sink) override {
            if (auto written = sink.write(random_bytes(100'000)); !written) return written;
            return Error("the state is odd");
        }
    };
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    world.store.take(meta_at(5), std::make_unique<Failing>());
    const auto found = world.outcomes().value();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, Kind::take_failed);
    EXPECT_EQ(found[0].why, "the state is odd");
    EXPECT_THAT(files_on(disk), IsEmpty());
    EXPECT_FALSE(world.store.taking());
}

TEST(SnapshotStore, failed_sync_is_final) {
    log::SimDisk disk = make_sim_disk();
    World world(disk);
    ASSERT_TRUE(world.load());
    disk.fail_next(log::DiskOperation::Kind::sync);
    world.take(5, random_bytes(10));
    for (int again = 0; again < 2; ++again) {
        const auto found = world.outcomes();
        ASSERT_FALSE(found);
        EXPECT_THAT(found.error().message(), HasSubstr("Input/output error"));
    }
}

TEST(SnapshotStore, store_that_ends_leaves_its_work_undone) {
    log::SimDisk disk = make_sim_disk();
    ManualBackground background;
    {
        SnapshotStore store(disk, background, [] { FAIL() << "woken after its end"; });
        ASSERT_TRUE(store.load(false));
        store.take(meta_at(5), std::make_unique<BytesState>(random_bytes(10), 10));
    }
    background.work_all();
    EXPECT_THAT(files_on(disk), IsEmpty());
}

TEST(StateMachine, without_snapshots_says_so) {
    class Plain final : public StateMachine {
        void apply(std::span<const Entry>, Replies&) override {}
    };
    class Nothing final : public SnapshotSource {
        Result<std::size_t> read(std::span<std::byte>) override { return std::size_t{0}; }
    };
    Plain plain;
    StateMachine& machine = plain;
    EXPECT_EQ(machine.snapshot(), nullptr);
    Nothing source;
    const auto restored = machine.restore(source);
    ASSERT_FALSE(restored);
    EXPECT_THAT(restored.error().message(), HasSubstr("this service has none"));
}

}  // namespace
}  // namespace lockstep::replica
