// How long a fence takes: each way to end a lane by itself, between bare queue pairs with nothing under way, and the
// whole of `revoke_incoming` on a lane that has just been written to, over RDMA and over TCP. Says it, and bounds it
// only loosely: docs/benchmarks.md has numbers.
#include "tests/contract/fixture.h"
#include "tests/contract/rdma/raw_lane.h"
#include "tests/contract/tcp/tcp_world.h"
#include "transport/rdma/loopback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::transport::contract {
namespace {

using std::chrono::steady_clock;

constexpr int kRounds = 40;

class Times {
 public:
    void time(const std::function<void()>& what) {
        const auto start = steady_clock::now();
        what();
        us_.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - start).count());
    }
    void print(const std::string& name) {
        std::sort(us_.begin(), us_.end());
        std::printf("fence, %s: median %.0f us, p90 %.0f us, longest %.0f us, of %zu\n", name.c_str(), median(),
                    us_[us_.size() * 9 / 10], us_.back(), us_.size());
    }
    double median() const { return us_[us_.size() / 2]; }

 private:
    std::vector<double> us_;
};

void to_state(rdma::QueuePair& pair, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    ASSERT_EQ(ibv_modify_qp(pair.raw(), &attributes, IBV_QP_STATE), 0);
}

TEST(FenceTime, of_each_way_by_itself) {
    if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
    using Way = std::pair<const char*, std::function<void(rdma::QueuePair&)>>;
    const Way ways[] = {
        {"the transport's way: RESET on a card, destroy on soft-RoCE",
         [](rdma::QueuePair& pair) { ASSERT_TRUE(pair.stop().ok()); }},
        {"RESET", [](rdma::QueuePair& pair) { to_state(pair, IBV_QPS_RESET); }},
        {"ERR (no fence)", [](rdma::QueuePair& pair) { to_state(pair, IBV_QPS_ERR); }},
        {"access flag dropped (no fence)", [](rdma::QueuePair& pair) {
             ibv_qp_attr attributes{};
             attributes.qp_access_flags = 0;
             ASSERT_EQ(ibv_modify_qp(pair.raw(), &attributes, IBV_QP_ACCESS_FLAGS), 0);
         }}};
    for (const auto& [name, way] : ways) {
        RawEnd holder = RawEnd::open({1}, 4096, IBV_ACCESS_LOCAL_WRITE);
        RawEnd target = RawEnd::open({2}, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        Times times;
        for (int round = 0; round < kRounds; ++round) {
            ASSERT_NO_FATAL_FAILURE(connect(holder, target, IBV_ACCESS_REMOTE_WRITE));
            ASSERT_TRUE(holder.write(target, 0, 64));
            ibv_wc done{};
            const auto deadline = steady_clock::now() + std::chrono::seconds(10);
            while (!holder.complete(done) && steady_clock::now() < deadline) {
            }
            ASSERT_EQ(done.status, IBV_WC_SUCCESS);
            times.time([&] { way(*target.pair); });
            ASSERT_FALSE(testing::Test::HasFatalFailure()) << name;
            holder.pair.reset();
            target.pair.reset();
        }
        times.print(name);
    }
}

TEST(FenceTime, of_the_loopback_read) {
    if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
    RawEnd end = RawEnd::open({1}, 4096, IBV_ACCESS_LOCAL_WRITE);
    auto loopback = rdma::Loopback::make(*end.device, end.memory);
    ASSERT_TRUE(loopback.ok()) << loopback.error().message();
    Times times;
    for (int round = 0; round < kRounds; ++round)
        times.time([&] { ASSERT_TRUE(loopback.value()->push_writes_out().ok()); });
    times.print("loopback READ");
}

class FenceTimeOfTransport : public Contract {};

TEST_P(FenceTimeOfTransport, revoke_returns_soon) {
    start_all();
    Times times;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
        const LaneId lane = open_lane(r1, r2);
        ASSERT_TRUE(write_lands(r1, lane, {0}, 64, round, 1));
        times.time([&] { fabric(r2).revoke_incoming(); });
        fabric(r1).end_lane(lane);
    }
    times.print("revoke_incoming over " + GetParam().name);
    EXPECT_LT(times.median(), 1e6);
}

INSTANTIATE_TEST_SUITE_P(FenceTime, FenceTimeOfTransport,
                         testing::Values(Kind{"rdma", [] { return std::make_unique<RdmaWorld>(); }, why_no_rdma},
                                         Kind{"tcp", [] { return std::make_unique<TcpWorld>(); }, why_no_rdma}),
                         kind_name);

}  // namespace
}  // namespace lockstep::transport::contract
