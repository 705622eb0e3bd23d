// RDMA where both ends have it and it connects, else TCP, peer by peer.
#include "tests/contract/fixture.h"
#include "tests/contract/rdma/mixed_world.h"

#include <cstdlib>
#include <string>

namespace lockstep::transport::contract {
namespace {

class Detour : public Contract {
 protected:
    // What is done to links ends with the test.
    ~Detour() override {
        if (linked_) lab_link("heal");
    }
    static bool has_links() {
        const char* where = std::getenv("LOCKSTEP_LAB");
        return where != nullptr && where == std::string("guest");
    }
    void lab_link(const std::string& words) {
        linked_ = true;
        ASSERT_EQ(std::system(("lab-link " + words).c_str()), 0) << words;
    }
    // Boards are read all the time: that is how a replica notices.
    bool until_path(ReplicaId from, ReplicaId to, const std::string& start) {
        return until({r1, r2, r3}, [&] {
            fabric(from).read_board(to);
            return fabric(from).path(to).starts_with(start);
        });
    }

 private:
    bool linked_ = false;
};

TEST_P(Detour, each_peer_is_reached_by_the_best_that_both_ends_have) {
    start_all();
    EXPECT_TRUE(fabric(r1).path(r2).starts_with("rdma (")) << fabric(r1).path(r2);
    EXPECT_EQ(fabric(r1).path(r3), "tcp (no RDMA: it has none)");
    EXPECT_TRUE(fabric(r3).path(r1).starts_with("tcp (")) << fabric(r3).path(r1);
    std::uint64_t seed = 1;
    for (const ReplicaId follower : {r2, r3}) {
        const LaneId lane = open_lane(r1, follower);
        EXPECT_TRUE(write_lands(r1, lane, {0}, 4096, seed++, 1));
        fabric(follower).revoke_incoming();
    }
}

TEST_P(Detour, loss_of_rdma_moves_a_peer_to_tcp_and_its_return_moves_it_back) {
    if (!has_links()) GTEST_SKIP() << "links can be cut in the lab only: run it by tools/rdma-lab";
    start_all();
    ASSERT_TRUE(until_path(r1, r2, "rdma"));
    const LaneId by_rdma = open_lane(r1, r2);
    ASSERT_TRUE(write_lands(r1, by_rdma, {0}, 4096, 1, 1));

    lab_link("cut 1 2 rdma");
    ASSERT_TRUE(until_path(r1, r2, "tcp"));
    EXPECT_TRUE(until({r1, r2, r3}, [&] { return broken(r1, by_rdma); }));
    EXPECT_FALSE(difference(r2, {0}, 4096, 1)) << "what had landed is lost";
    fabric(r2).revoke_incoming();
    const LaneId by_tcp = open_lane(r1, r2, {4096});
    ASSERT_TRUE(write_lands(r1, by_tcp, {4096}, 4096, 2, 1));
    EXPECT_EQ(count(r1, EventKind::peer_down, r2), 0U) << "the peer is as near as before";

    lab_link("heal");
    ASSERT_TRUE(until_path(r1, r2, "rdma"));
    EXPECT_TRUE(until({r1, r2, r3}, [&] { return broken(r1, by_tcp); }));
    fabric(r2).revoke_incoming();
    const LaneId again = open_lane(r1, r2, {8192});
    ASSERT_TRUE(write_lands(r1, again, {8192}, 4096, 3, 1));
    EXPECT_EQ(count(r1, EventKind::peer_down, r2), 0U);
    EXPECT_FALSE(difference(r2, {4096}, 4096, 2));
}

const Kind kMixed{"mixed", [] { return std::make_unique<MixedWorld>(r3); }, why_no_rdma};

INSTANTIATE_TEST_SUITE_P(detour, Detour, testing::Values(kMixed), kind_name);
INSTANTIATE_TEST_SUITE_P(partly_rdma, Contract, testing::Values(kMixed), kind_name);

}  // namespace
}  // namespace lockstep::transport::contract
