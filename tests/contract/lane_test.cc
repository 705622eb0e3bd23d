// Lanes: F1, F2, F4, F5, F9, and their bounds. A follower is not polled unless a test says so: lanes need nothing of
// its protocol thread.
#include "tests/contract/fixture.h"

#include <limits>
#include <random>

namespace lockstep::transport::contract {
namespace {

TEST_P(Contract, ring_is_zeroed_and_page_aligned_with_a_probe_line_behind) {
    Fabric& one = start({r1});
    EXPECT_EQ(one.ring().size(), std::uint64_t{1} << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.ring().data()) % 4096, 0u);
    for (const std::byte byte : one.ring()) ASSERT_EQ(byte, std::byte{0});
    EXPECT_EQ(probe_line(r1), 0u);
}

TEST_P(Contract, f1_writes_of_a_lane_land_in_the_order_posted) {
    constexpr std::uint64_t kRing = std::uint64_t{1} << 20;
    start_all(kRing);
    std::mt19937_64 random(1);
    const LaneId lane = open_lane(r1, r2);
    struct Posted {
        Position at;
        std::uint64_t bytes;
    };
    std::vector<Posted> posted;
    Position at;
    std::uint64_t checked = 0;
    // Four laps of the ring, in writes of all sizes, with gaps between some; each lap with its own pattern.
    ASSERT_TRUE(until({r1}, [&] {
        for (int more = 0; more < 8 && at.value < 4 * kRing; ++more) {
            const std::uint64_t left = kRing - at.value % kRing;
            const std::uint64_t size = random() % 3 == 0 ? 1 + random() % (128 * 1024) : 64 * (1 + random() % 8);
            const std::uint64_t bytes = std::min(left, size);
            // No lap ahead of what landed: the bytes are still to be checked.
            if (posted.size() > landed(r1, lane) && at.value + bytes > posted[landed(r1, lane)].at.value + kRing) break;
            fill(r1, at, bytes, at.value / kRing);
            if (!fabric(r1).write(lane, at, bytes)) break;
            posted.push_back({at, bytes});
            at = Position{(at.value + bytes + 63) / 64 * 64} + 64 * (random() % 2);
        }
        fabric(r1).flush();
        poll(r1, 0ns);
        // What is said to have landed is in the peer's memory, whole, when the peer looks (F2).
        const std::uint64_t count = landed(r1, lane);
        const Position safe = fabric(r2).incoming_landed();
        for (; checked < count; ++checked) {
            const Posted& one = posted[checked];
            if (safe < one.at + one.bytes) ADD_FAILURE() << "landed, but the follower may not look";
            if (at.value > one.at.value + kRing) continue;  // overwritten meanwhile
            EXPECT_EQ(difference(r2, one.at, one.bytes, one.at.value / kRing), std::nullopt) << "write " << checked;
        }
        return at.value >= 4 * kRing && checked == posted.size();
    })) << landed(r1, lane) << " of " << posted.size() << " landed";
    std::uint64_t before = 0;
    for (const Seen& one : seen(r1)) {
        if (one.event.kind != EventKind::landed) continue;
        EXPECT_EQ(one.event.lane, lane);
        EXPECT_EQ(one.event.peer, r2);
        EXPECT_GT(one.event.count, before);
        before = one.event.count;
    }
    EXPECT_FALSE(broken(r1, lane));
}

TEST_P(Contract, f2_landed_bytes_are_seen_by_a_scan_after_a_later_fence) {
    start_all();
    for (std::uint64_t round = 0; round < 20; ++round) {
        const LaneId lane = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, lane, {0}, 200'000, round, 1));
        fabric(r2).revoke_incoming();
        ASSERT_EQ(difference(r2, {0}, 200'000, round), std::nullopt);
        fabric(r1).end_lane(lane);
    }
}

TEST_P(Contract, probe_lands_behind_the_ring_and_counts_as_a_write) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    fill(r1, {0}, 64, 1);
    ASSERT_TRUE(fabric(r1).write(lane, {0}, 64));
    ASSERT_TRUE(fabric(r1).probe(lane, 0x1122334455667788));
    fill(r1, {64}, 64, 1);
    ASSERT_TRUE(fabric(r1).write(lane, {64}, 64));
    ASSERT_TRUE(fabric(r1).probe(lane, 99));
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return landed(r1, lane) == 4; }));
    fabric(r2).revoke_incoming();
    EXPECT_EQ(probe_line(r2), 99u);
    EXPECT_EQ(difference(r2, {0}, 128, 1), std::nullopt);
}

TEST_P(Contract, writes_need_a_flush_and_are_bounded) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    fill(r1, {0}, 64 * 128, 1);
    for (std::size_t i = 0; i < kMaxUnfinishedWrites; ++i) ASSERT_TRUE(fabric(r1).write(lane, {64 * i}, 64)) << i;
    EXPECT_FALSE(fabric(r1).write(lane, {64 * kMaxUnfinishedWrites}, 64));
    EXPECT_FALSE(fabric(r1).probe(lane, 1));
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return landed(r1, lane) == kMaxUnfinishedWrites; }));
    // Room again, as far as what has landed.
    for (std::size_t i = 0; i < kMaxUnfinishedWrites; ++i) ASSERT_TRUE(fabric(r1).probe(lane, i)) << i;
    EXPECT_FALSE(fabric(r1).probe(lane, 1));
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return landed(r1, lane) == 2 * kMaxUnfinishedWrites; }));
}

TEST_P(Contract, largest_write_lands) {
    start_all(std::uint64_t{4} << 20);
    const LaneId lane = open_lane(r1, r2, {kMaxTransferBytes});
    ASSERT_TRUE(write_lands(r1, lane, {kMaxTransferBytes}, kMaxTransferBytes, 3, 1));
    fabric(r2).revoke_incoming();
    EXPECT_EQ(difference(r2, {kMaxTransferBytes}, kMaxTransferBytes, 3), std::nullopt);
    EXPECT_EQ(fabric(r2).ring()[kMaxTransferBytes - 1], std::byte{0});
    EXPECT_EQ(fabric(r2).ring()[2 * kMaxTransferBytes], std::byte{0});
}

TEST_P(Contract, write_to_a_lane_that_is_not_there_is_not_posted) {
    start_all();
    EXPECT_FALSE(fabric(r1).write(fresh_lane(), {0}, 64));
    EXPECT_FALSE(fabric(r1).probe(fresh_lane(), 1));
    fabric(r1).end_lane(fresh_lane());
    fabric(r1).flush();
}

TEST_P(Contract, incoming_landed_is_the_base_at_first_and_everything_without_a_lane) {
    start_all();
    constexpr Position everything{std::numeric_limits<std::uint64_t>::max()};
    EXPECT_EQ(fabric(r2).incoming_landed(), everything);
    const LaneId lane = open_lane(r1, r2, {4096});
    const Position at_first = fabric(r2).incoming_landed();
    EXPECT_TRUE(at_first == Position{4096} || at_first == everything) << at_first.value;
    ASSERT_TRUE(write_lands(r1, lane, {8192}, 64, 1, 1));
    EXPECT_GE(fabric(r2).incoming_landed(), Position{8192 + 64});
    fabric(r2).revoke_incoming();
    EXPECT_EQ(fabric(r2).incoming_landed(), everything);
}

TEST_P(Contract, landings_end_the_followers_wait) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    ASSERT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
    // A single poll with a long wait: what ends it is the landing.
    const auto start = std::chrono::steady_clock::now();
    poll(r2, kDeadline);
    EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline / 2);
}

TEST_P(Contract, only_one_incoming_lane_can_be_open) {
    start_all();
    ASSERT_TRUE(fabric(r2).open_incoming(r1, {1}, {}));
    const auto second = fabric(r2).open_incoming(r3, {3}, {});
    ASSERT_FALSE(second);
    EXPECT_FALSE(second.error().message().empty());
    fabric(r2).revoke_incoming();
    EXPECT_TRUE(fabric(r2).open_incoming(r3, {3}, {}));
}

TEST_P(Contract, f5_address_serves_one_connection_only) {
    start_all();
    const auto address = fabric(r2).open_incoming(r1, {1}, {});
    ASSERT_TRUE(address);
    const LaneId first = fresh_lane();
    fabric(r1).connect_lane(first, r2, address.value());
    ASSERT_TRUE(write_lands(r1, first, {0}, 64, 1, 1));
    const LaneId second = fresh_lane();
    fabric(r1).connect_lane(second, r2, address.value());
    fill(r1, {64}, 64, 9);
    fabric(r1).write(second, {64}, 64);
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, second); }));
    EXPECT_EQ(landed(r1, second), 0u);
    EXPECT_EQ(fabric(r2).ring()[64], std::byte{0});
    // The lane that has the right goes on.
    EXPECT_FALSE(broken(r1, first));
    ASSERT_TRUE(write_lands(r1, first, {64}, 64, 2, 2));
    // Nor does the address serve again after its lane has gone.
    fabric(r1).end_lane(first);
    const LaneId third = fresh_lane();
    fabric(r1).connect_lane(third, r2, address.value());
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, third); }));
}

TEST_P(Contract, f5_lane_that_broke_takes_no_more) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    ASSERT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
    fabric(r2).revoke_incoming();
    fabric(r1).probe(lane, 1);
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); }));
    EXPECT_FALSE(last(r1, EventKind::lane_broken, r2)->event.why.empty());
    EXPECT_FALSE(fabric(r1).write(lane, {64}, 64));
    EXPECT_FALSE(fabric(r1).probe(lane, 1));
    // Another lane is another thing.
    const LaneId next = open_lane(r1, r2, {64});
    ASSERT_TRUE(write_lands(r1, next, {64}, 64, 1, 1));
    run_for({r1}, 5ms);
    std::size_t times = 0;
    for (const Seen& one : seen(r1)) times += one.event.kind == EventKind::lane_broken && one.event.lane == lane;
    EXPECT_EQ(times, 1u);
}

TEST_P(Contract, f5_completions_of_an_ended_lane_are_not_reported) {
    start_all();
    for (std::uint64_t round = 0; round < 50; ++round) {
        const LaneId old = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, old, {0}, 64, round, 1));
        fill(r1, {64}, 4096, round);
        ASSERT_TRUE(fabric(r1).write(old, {64}, 4096));
        fabric(r1).flush();
        // It lands, and its completion is on the way, but the holder ends the lane before it looks.
        ASSERT_TRUE(until({r2}, [&] { return fabric(r2).incoming_landed() >= Position{64 + 4096}; }));
        fabric(r1).end_lane(old);
        fabric(r2).revoke_incoming();
        const LaneId next = open_lane(r1, r2);
        seen(r1).clear();
        ASSERT_TRUE(write_lands(r1, next, {0}, 64, round, 1));
        for (const Seen& one : seen(r1)) ASSERT_NE(one.event.lane, old);
        fabric(r2).revoke_incoming();
        fabric(r1).end_lane(next);
    }
}

TEST_P(Contract, lane_of_another_holder_is_refused) {
    start_all();
    const auto address = fabric(r2).open_incoming(r3, {3}, {});
    ASSERT_TRUE(address);
    const LaneId stolen = fresh_lane();
    fabric(r1).connect_lane(stolen, r2, address.value());
    fill(r1, {0}, 64, 1);
    fabric(r1).write(stolen, {0}, 64);
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, stolen); }));
    EXPECT_EQ(landed(r1, stolen), 0u);
    EXPECT_EQ(fabric(r2).ring()[0], std::byte{0});
    // It still serves whom it was made for.
    const LaneId lane = fresh_lane();
    fabric(r3).connect_lane(lane, r2, address.value());
    EXPECT_TRUE(write_lands(r3, lane, {0}, 64, 1, 1));
}

TEST_P(Contract, lane_of_another_life_of_the_holder_is_refused) {
    start_all();
    const auto address = fabric(r2).open_incoming(r1, {12345}, {});
    ASSERT_TRUE(address);
    const LaneId lane = fresh_lane();
    fabric(r1).connect_lane(lane, r2, address.value());
    fill(r1, {0}, 64, 1);
    fabric(r1).write(lane, {0}, 64);
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); }));
    EXPECT_EQ(fabric(r2).ring()[0], std::byte{0});
}

TEST_P(Contract, address_that_is_none_breaks_the_lane) {
    start_all();
    LaneAddress garbage;
    garbage.bytes.fill(std::byte{0x5a});
    for (const std::uint8_t size : {0, 1, 16, 63, 64}) {
        garbage.size = size;
        const LaneId lane = fresh_lane();
        fabric(r1).connect_lane(lane, r2, garbage);
        ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); })) << int{size};
    }
    const LaneId lane = fresh_lane();
    fabric(r1).connect_lane(lane, {200}, garbage);  // no such peer
    ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); }));
}

TEST_P(Contract, f9_source_bytes_are_free_once_a_lane_has_ended) {
    constexpr std::uint64_t kRing = std::uint64_t{16} << 20;
    start_all(kRing);
    std::mt19937_64 random(2);
    for (std::uint64_t round = 0; round < 5; ++round) {
        const LaneId lane = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
        const std::uint64_t writes = 4 + random() % 8;
        for (std::uint64_t i = 1; i <= writes; ++i) {
            fill(r1, {i << 20}, 1 << 20, 1);
            ASSERT_TRUE(fabric(r1).write(lane, {i << 20}, 1 << 20));
        }
        fabric(r1).flush();
        for (std::uint64_t polls = random() % 4; polls > 0; --polls) poll(r1, 0ns);
        fabric(r1).end_lane(lane);
        // Other bytes in the same place: the old writes may still land, but only with what they were posted with.
        for (std::uint64_t i = 1; i <= writes; ++i) fill(r1, {i << 20}, 1 << 20, 2);
        run_for({r1}, 5ms);
        fabric(r2).revoke_incoming();
        for (std::uint64_t at = 1 << 20; at < (writes + 1) << 20; ++at) {
            const std::byte found = fabric(r2).ring()[at];
            if (found != std::byte{0} && found != pattern(at, 1)) FAIL() << "round " << round << " at " << at;
        }
    }
}

TEST_P(Contract, lanes_come_and_go_a_thousand_times) {
    start_all();
    Position at;
    for (int round = 0; round < 1000; ++round) {
        const LaneId lane = open_lane(r1, r2, at);
        ASSERT_TRUE(write_lands(r1, lane, at, 64, 1, 1)) << "round " << round;
        at = at + 64;
        // Either end first, and sometimes one end only before the next lane.
        if (round % 2 == 0) fabric(r1).end_lane(lane);
        fabric(r2).revoke_incoming();
        if (round % 2 == 1) fabric(r1).end_lane(lane);
        seen(r1).clear();
    }
    EXPECT_EQ(difference(r2, {0}, at.value, 1), std::nullopt);
}

}  // namespace
}  // namespace lockstep::transport::contract
