// A crash at every disk operation of a workload: what was acknowledged is there afterwards, what was never appended is
// not, a promise is the old one or the new one, and a crash alone is never taken for corruption.
#include "tests/unit/wal/wal_world.h"

namespace lockstep::log {
namespace {

void random_wish(WalWorld& world, bool with_new_eras) {
    switch (world.random() % 32) {
        case 0: world.promise(); break;
        case 1:
        case 2:
            if (world.wal->durable().position > world.wal->base().position)
                world.truncate(world.random_point(world.wal->base().position));
            break;
        case 3: world.wal->release(world.acknowledged.position); break;
        case 4:
            if (with_new_eras && world.random() % 4 == 0 && !world.old_log) {
                ++world.wal_era;
                // A snapshot: of this log, or of what other replicas have further on.
                for (std::uint64_t count = world.random() % 20; count > 0; --count) world.append_random();
                world.start_anew(world.tail);
            }
            break;
        default:
            for (std::uint64_t count = world.random() % 4; count > 0 && world.room(); --count) world.append_random();
            world.hand_over();
    }
}

// One step of a workload, the same for the same seed up to the crash.
void random_step(WalWorld& world, bool with_new_eras) {
    random_wish(world, with_new_eras);
    // Group commit: several hand-overs to one job, now and then.
    if (world.random() % 3 == 0) return;
    const DiskJob* const job = world.wal->next();
    if (job == nullptr) return;
    // What is wished while a job is performed: it may be cut, or be of an old era, when it ends.
    while (world.random() % 3 == 0) random_wish(world, with_new_eras);
    world.finish(perform_all(world.disk, job->operations()));
}

// Runs until the disk has lost power, or for that many steps.
void run(WalWorld& world, int steps, bool with_new_eras) {
    for (int step = 0; step < steps && !world.wal->stopped(); ++step) random_step(world, with_new_eras);
    if (!world.wal->stopped()) world.work_all();
}

bool holds(const Recovered& recovered, const std::vector<Point>& ends, const Point& point) {
    return recovered.hard.base == point || std::ranges::find(ends, point) != ends.end() ||
           point.position < recovered.hard.base.position;
}

// After a crash: what must hold, then the log goes on from what was found.
void restart_and_check(WalWorld& world) {
    world.disk.crash();
    std::vector<Point> ends;
    const auto recovered = world.recover_now(&ends);
    ASSERT_TRUE(recovered);
    EXPECT_NE(recovered->found, Damage::corrupt) << recovered->story;
    EXPECT_GE(recovered->hard.promised, world.kept_promise);
    EXPECT_LE(recovered->hard.promised.value, world.promised);
    const bool old_one = world.old_log && recovered->hard.era == world.old_log->first;
    const Point acknowledged = old_one ? world.old_log->second : world.acknowledged;
    EXPECT_TRUE(holds(*recovered, ends, acknowledged))
        << "acknowledged up to " << acknowledged.position.value << ", found up to " << recovered->end.position.value;
    if (!old_one) {
        EXPECT_EQ(recovered->hard.era, world.wal_era);
    }

    world.open(*recovered);
    world.tail = recovered->end;
    world.acknowledged = recovered->end;
    world.kept_promise = recovered->hard.promised;
    world.promised = recovered->hard.promised.value;
    world.old_log.reset();
    world.points = {{recovered->hard.base.position.value, recovered->hard.base}};
    for (const Point& end : ends) world.points[end.position.value] = end;
}

void sweep(std::uint64_t seed, int steps, bool with_new_eras) {
    std::uint64_t operations = 0;
    {
        WalWorld world(seed);
        const std::uint64_t before = world.disk.operations();
        run(world, steps, with_new_eras);
        ASSERT_FALSE(world.wal->stopped()) << world.wal->stopped()->message();
        operations = world.disk.operations() - before;
    }
    ASSERT_GT(operations, 20u);
    for (std::uint64_t at = 0; at < operations; ++at) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", crash at operation " + std::to_string(at));
        WalWorld world(seed);
        world.disk.crash_in(at);
        run(world, steps, with_new_eras);
        ASSERT_TRUE(world.disk.crashed());
        restart_and_check(world);
        if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
        // Again, soon after: what recovery has cut and lowered must not have hurt.
        world.disk.crash_in(world.random() % 20);
        run(world, 40, with_new_eras);
        restart_and_check(world);
        if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
        run(world, 40, with_new_eras);
        ASSERT_FALSE(world.wal->stopped()) << world.wal->stopped()->message();
        EXPECT_EQ(world.wal->durable(), world.wal->appended());
        restart_and_check(world);
        if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    }
}

TEST(WalSweep, crash_at_every_operation_loses_nothing_and_invents_nothing) {
    for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) sweep(seed, 120, false);
}

TEST(WalSweep, crash_at_every_operation_with_snapshots_installed) {
    for (std::uint64_t seed = 101; seed <= 112 && !HasFailure(); ++seed) sweep(seed, 120, true);
}

}  // namespace
}  // namespace lockstep::log
