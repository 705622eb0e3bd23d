// The fence: F3, and F4 as far as it says what a fence leaves behind.
#include "tests/contract/fixture.h"

#include <random>

namespace lockstep::transport::contract {
namespace {

constexpr std::uint64_t kRing = std::uint64_t{1} << 20;

// One holder storms the follower's ring, in chunks of all sizes, as fast as it can; the follower revokes at some
// moment. From then on nothing changes in its ring, while the holder goes on for as long as its lane seems to stand.
TEST_P(Contract, f3_ring_never_changes_after_revoke) {
    start_all(kRing);
    std::mt19937_64 random(3);
    std::uint64_t rounds_cut_short = 0;
    for (std::uint64_t round = 1; round <= 200; ++round) {
        const LaneId lane = open_lane(r1, r2);
        Position at;
        std::uint64_t posted = 0;
        const auto storm = [&] {
            for (;;) {
                const std::uint64_t chunk = random() % 2 == 0 ? 128 * 1024 : 64 * (1 + random() % 64);
                const std::uint64_t bytes = std::min(kRing - at.value % kRing, chunk);
                if (!fabric(r1).write(lane, at, bytes)) break;
                ++posted;
                at = at + bytes;
                if (random() % 8 == 0 && fabric(r1).probe(lane, round * 1000 + posted)) ++posted;
            }
            fabric(r1).flush();
        };
        fill(r1, {0}, kRing, round);
        storm();
        for (std::uint64_t turns = random() % 6; turns > 0; --turns) {
            poll(r1, std::chrono::microseconds(random() % 100));
            storm();
        }
        fabric(r2).revoke_incoming();
        const std::uint64_t fenced = hash(r2);
        if (landed(r1, lane) < posted) ++rounds_cut_short;
        for (int turn = 0; turn < 8; ++turn) {
            poll(r1, 100us);
            storm();
            ASSERT_EQ(hash(r2), fenced) << "round " << round << ", turn " << turn;
        }
        fabric(r1).end_lane(lane);
        ASSERT_EQ(hash(r2), fenced) << "round " << round << ", after the lane's end";
        seen(r1).clear();
    }
    // Otherwise the fence has never met a write under way, and this test has shown nothing.
    EXPECT_GT(rounds_cut_short, 50u);
}

TEST_P(Contract, f3_address_of_a_revoked_lane_that_was_never_used_opens_nothing) {
    start_all(kRing);
    const auto address = fabric(r2).open_incoming(r1, {1}, {});
    ASSERT_TRUE(address);
    fabric(r2).revoke_incoming();
    const std::uint64_t fenced = hash(r2);
    const LaneId lane = fresh_lane();
    fabric(r1).connect_lane(lane, r2, address.value());
    fill(r1, {0}, 4096, 1);
    fabric(r1).write(lane, {0}, 4096);
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); }));
    EXPECT_EQ(landed(r1, lane), 0u);
    EXPECT_EQ(hash(r2), fenced);
}

// The lane is still connecting, with its first writes right behind, when it is revoked.
TEST_P(Contract, f3_revoke_meets_a_lane_that_is_just_being_connected) {
    start_all(kRing);
    std::mt19937_64 random(4);
    for (std::uint64_t round = 1; round <= 100; ++round) {
        const LaneId lane = open_lane(r1, r2);
        fill(r1, {0}, 256 * 1024, round);
        ASSERT_TRUE(fabric(r1).write(lane, {0}, 256 * 1024));
        fabric(r1).flush();
        for (std::uint64_t turns = random() % 3; turns > 0; --turns) poll(r1, std::chrono::microseconds(random() % 50));
        fabric(r2).revoke_incoming();
        const std::uint64_t fenced = hash(r2);
        for (int turn = 0; turn < 4; ++turn) {
            poll(r1, 100us);
            ASSERT_EQ(hash(r2), fenced) << "round " << round;
        }
        fabric(r1).end_lane(lane);
    }
}

// S1: the next lane is another holder's, and the old one's bytes never come in between.
TEST_P(Contract, f3_old_holder_does_not_write_into_the_next_ones_lane) {
    start_all(kRing);
    for (std::uint64_t round = 1; round <= 30; ++round) {
        const LaneId old = open_lane(r1, r2);
        fill(r1, {0}, kRing, 1);
        for (std::uint64_t at = 0; at < kRing; at += 64 * 1024) ASSERT_TRUE(fabric(r1).write(old, {at}, 64 * 1024));
        fabric(r1).flush();
        fabric(r2).revoke_incoming();
        const LaneId next = open_lane(r3, r2);
        fill(r3, {0}, 512 * 1024, 2);
        for (std::uint64_t at = 0; at < 512 * 1024; at += 64 * 1024)
            ASSERT_TRUE(fabric(r3).write(next, {at}, 64 * 1024));
        fabric(r3).flush();
        ASSERT_TRUE(until({r3, r1}, [&] { return landed(r3, next) == 8; }));
        fabric(r2).revoke_incoming();
        ASSERT_EQ(difference(r2, {0}, 512 * 1024, 2), std::nullopt) << "round " << round;
        fabric(r1).end_lane(old);
        fabric(r3).end_lane(next);
    }
}

TEST_P(Contract, revoke_without_a_lane_has_no_effect) {
    Fabric& one = start({r1});
    one.revoke_incoming();
    one.revoke_incoming();
}

}  // namespace
}  // namespace lockstep::transport::contract
