// What is RDMA's alone: who may do what, devices that come and go, and reconnects without end.
#include "tests/contract/fixture.h"
#include "tests/contract/rdma/raw_lane.h"
#include "tests/contract/rdma/rdma_world.h"

#include <cstdlib>

namespace lockstep::transport::contract {
namespace {

class Rdma : public Contract {};

INSTANTIATE_TEST_SUITE_P(own, Rdma,
                         testing::Values(Kind{"blocking", [] { return std::make_unique<RdmaWorld>(); }, why_no_rdma}),
                         kind_name);

bool lab_link(const std::string& arguments) { return std::system(("lab-link " + arguments).c_str()) == 0; }
bool in_lab_with_links() {
    const char* layout = std::getenv("LOCKSTEP_LAB_LAYOUT");
    return layout != nullptr && std::string(layout) == "links";
}

// F8: a queue pair error flushes what is behind it, and leaves the other peer alone.
TEST_P(Rdma, queue_pair_error_breaks_its_own_lane_only) {
    start_all();
    const LaneId sound = open_lane(r1, r2);
    // Its address names a key that the follower has not given out: the first write breaks the queue pair.
    auto address = fabric(r3).open_incoming(r1, {1}, {});
    ASSERT_TRUE(address.ok());
    LaneAddress wrong = address.value();
    wrong.bytes[wrong.size - 1u] ^= std::byte{0xff};
    const LaneId faulty = fresh_lane();
    fabric(r1).connect_lane(faulty, r3, wrong);
    fill(r1, {0}, 4096 * 32, 1);
    for (std::uint64_t i = 0; i < 32; ++i) {
        ASSERT_TRUE(fabric(r1).write(sound, {4096 * i}, 4096));
        fabric(r1).write(faulty, {4096 * i}, 4096);
    }
    fabric(r1).flush();
    ASSERT_TRUE(until({r1}, [&] { return landed(r1, sound) == 32 && broken(r1, faulty); }));
    EXPECT_FALSE(broken(r1, sound));
    EXPECT_EQ(landed(r1, faulty), 0u);
    EXPECT_EQ(count(r1, EventKind::peer_down, r2), 0u);
    EXPECT_EQ(count(r1, EventKind::peer_down, r3), 0u);
    fabric(r2).revoke_incoming();
    EXPECT_EQ(difference(r2, {0}, 4096 * 32, 1), std::nullopt);
}

// F3, F4: cut in the middle of a write of many packets, what has landed is a prefix, and the rest never comes.
TEST_P(Rdma, revoke_in_the_middle_of_a_write_of_many_packets_leaves_a_prefix) {
    constexpr std::uint64_t kWrite = kMaxTransferBytes;
    start_all(std::uint64_t{2} << 20);
    int cut = 0;
    for (std::uint64_t round = 1; round <= 20; ++round) {
        const LaneId lane = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, lane, {0}, 64, round, 1));
        fill(r1, {kWrite}, kWrite, round);
        ASSERT_TRUE(fabric(r1).write(lane, {kWrite}, kWrite));
        fabric(r1).flush();
        for (std::uint64_t polls = round % 4; polls > 0; --polls) poll(r1, 50us);
        fabric(r2).revoke_incoming();
        const std::uint64_t fenced = hash(r2);
        const std::uint64_t end = difference(r2, {kWrite}, kWrite, round).value_or(2 * kWrite);
        cut += end < 2 * kWrite;
        run_for({r1}, 5ms);
        EXPECT_EQ(hash(r2), fenced) << "round " << round;
        fabric(r1).end_lane(lane);
    }
    EXPECT_GT(cut, 0) << "no write was cut: this has shown nothing";
}

// Reconnects without end: each lane takes another queue pair at both ends, and leaves nothing behind.
// LOCKSTEP_RECONNECTS sets how many (100 by default; in the lab each takes some ten milliseconds).
TEST_P(Rdma, lanes_are_opened_and_fenced_without_end) {
    const char* text = std::getenv("LOCKSTEP_RECONNECTS");
    const std::uint64_t rounds = text != nullptr ? std::strtoull(text, nullptr, 10) : 100;
    start_all();
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        const LaneId lane = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, lane, {0}, 64, round, 1)) << "lane " << round;
        fabric(r2).revoke_incoming();
        ASSERT_EQ(difference(r2, {0}, 64, round), std::nullopt) << "lane " << round;
        ASSERT_TRUE(until({r1}, [&] { return broken(r1, lane); })) << "lane " << round;
        seen(r1).clear();
    }
    RecordProperty("reconnects", static_cast<int>(rounds));
}

// Each life of a peer is another queue pair, and the old one is gone.
TEST_P(Rdma, control_pairs_are_made_anew_each_time_that_a_peer_comes_back) {
    start_all();
    for (std::uint64_t life = 2; life < 12; ++life) {
        kill(r2);
        ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::peer_down, r2) == life - 1; }));
        start({r2, {life + 100}});
        ASSERT_TRUE(until({r1, r2}, [&] {
            return count(r1, EventKind::peer_up, r2) == life && count(r2, EventKind::peer_up, r1) >= 1;
        })) << "life " << life << ": " << fabric(r1).path(r2);
        seen(r2).clear();
        const std::size_t boards = count(r1, EventKind::board, r2);
        fabric(r1).read_board(r2);
        ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::board, r2) > boards; }));
    }
}

TEST_P(Rdma, port_that_goes_down_breaks_what_uses_it_and_comes_back) {
    if (!in_lab_with_links()) GTEST_SKIP() << "only the lab's links can be taken down";
    start_all();
    const LaneId lane = open_lane(r1, r2);
    const LaneId other = open_lane(r1, r3);
    ASSERT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
    ASSERT_TRUE(lab_link("down 2"));
    fill(r1, {64}, 64, 1);
    fabric(r1).write(lane, {64}, 64);
    fabric(r1).flush();
    const bool noticed = until({r1, r2}, [&] {
        return count(r2, EventKind::peer_down, r1) > 0 && count(r1, EventKind::peer_down, r2) > 0 && broken(r1, lane);
    });
    EXPECT_TRUE(noticed);
    // The follower's fence works without its port, and the other peer has noticed nothing.
    fabric(r2).revoke_incoming();
    EXPECT_TRUE(write_lands(r1, other, {0}, 64, 1, 1));
    ASSERT_TRUE(lab_link("up 2"));
    ASSERT_TRUE(until({r1, r2, r3}, [&] {
        return count(r1, EventKind::peer_up, r2) > 1 && count(r2, EventKind::peer_up, r1) > 1;
    })) << fabric(r1).path(r2) << "; " << fabric(r2).path(r1);
    const LaneId next = open_lane(r1, r2, {64});
    EXPECT_TRUE(write_lands(r1, next, {64}, 64, 1, 1));
}

// A key of the ring serves through the lane's queue pair only: protection domains carry the rights.
TEST_P(Rdma, key_of_another_domain_opens_nothing) {
    RawEnd holder = RawEnd::open(r1, 4096, IBV_ACCESS_LOCAL_WRITE);
    RawEnd target = RawEnd::open(r2, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    // The same device, another domain: what a control pair is to the lane's memory.
    const rdma::Domain own = std::move(target.domain);
    target.domain.reset(ibv_alloc_pd(target.device->context()));
    ASSERT_NO_FATAL_FAILURE(connect(holder, target, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
    holder.memory.ring()[0] = std::byte{1};
    ASSERT_TRUE(holder.write(target, 0, 64));
    ibv_wc done{};
    ASSERT_TRUE(until({}, [&] { return holder.complete(done); }));
    EXPECT_EQ(done.status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(target.memory.ring()[0], std::byte{0});
    target.pair.reset();
    target.region.reset();
}

}  // namespace
}  // namespace lockstep::transport::contract
