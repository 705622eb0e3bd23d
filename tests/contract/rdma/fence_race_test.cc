// A storm of writes against each way to end a lane, between two bare queue pairs: after the way's call has returned the
// target's memory must not change. The transport's own way must hold; for the shortcut by the access flag the test
// counts how often it does not.
#include "tests/contract/rdma/raw_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include <xxhash.h>

namespace lockstep::transport::contract {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = std::uint64_t{64} << 10;
constexpr std::uint32_t kChunk = 4096;

// LOCKSTEP_FENCE_ROUNDS sets how many; in the lab a round takes some ten milliseconds.
int rounds() {
    const char* text = std::getenv("LOCKSTEP_FENCE_ROUNDS");
    return text != nullptr ? std::max(1, std::atoi(text)) : 500;
}

class FenceRace : public testing::Test {
 protected:
    void SetUp() override {
        if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
    }

    struct Outcome {
        int changed = 0;  // rounds in which the memory changed after the fence had returned
        int cut = 0;      // rounds in which writes were under way when it came
    };

    // In each round a thread writes as fast as it can, each lap with other bytes, while the fence comes.
    static Outcome race(int count, const std::function<void(rdma::QueuePair&)>& fence) {
        Outcome outcome;
        RawEnd holder = RawEnd::open({1}, kBytes, IBV_ACCESS_LOCAL_WRITE);
        RawEnd target = RawEnd::open({2}, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        std::mt19937 random(7);
        for (int round = 0; round < count && !testing::Test::HasFatalFailure(); ++round) {
            connect(holder, target, IBV_ACCESS_REMOTE_WRITE);
            std::atomic<bool> over{false};
            std::atomic<int> landed{0};
            std::thread writer([&] { storm(holder, target, over, landed); });
            // The fence comes once the storm is on, at a place in it that differs from round to round.
            const int after = 1 + static_cast<int>(random() % 24);
            const auto deadline = std::chrono::steady_clock::now() + 5s;
            while (landed.load() < after && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
            fence(*target.pair);
            const std::uint64_t fenced = XXH3_64bits(target.memory.ring().data(), kBytes);
            std::this_thread::sleep_for(2ms);
            outcome.cut += landed.load() >= after;
            outcome.changed += XXH3_64bits(target.memory.ring().data(), kBytes) != fenced;
            over.store(true);
            writer.join();
            holder.pair.reset();
            target.pair.reset();
        }
        return outcome;
    }

 private:
    static void storm(RawEnd& holder, RawEnd& target, const std::atomic<bool>& over, std::atomic<int>& landed) {
        std::uint64_t posted = 0;
        std::uint64_t completed = 0;
        bool broken = false;
        while (!over.load()) {
            while (!broken && posted - completed < 16) {
                const std::uint64_t at = posted * kChunk % kBytes;
                // A source that changes under a write is fine here: it only makes each landing visible.
                holder.memory.ring()[at] = std::byte(posted + 1);
                holder.memory.ring()[at + kChunk - 1] = std::byte(posted + 1);
                if (!holder.write(target, at, kChunk)) break;
                ++posted;
            }
            ibv_wc done{};
            while (holder.complete(done)) {
                ++completed;
                broken |= done.status != IBV_WC_SUCCESS;
                if (!broken) landed.fetch_add(1);
            }
        }
    }
};

TEST_F(FenceRace, way_of_the_transport_holds) {
    const int count = rounds();
    const Outcome outcome = race(count, [](rdma::QueuePair& pair) { ASSERT_TRUE(pair.stop().ok()); });
    EXPECT_EQ(outcome.changed, 0) << "of " << count << " rounds";
    EXPECT_GT(outcome.cut, count / 2);
    RecordProperty("rounds", count);
}

// Says what the shortcut would do here. It is allowed to hold: a card may. Where it does not, that is the difference
// that the other test would see.
TEST_F(FenceRace, shortcut_by_the_access_flag_is_counted) {
    const int count = rounds();
    const Outcome outcome = race(count, [](rdma::QueuePair& pair) {
        ibv_qp_attr attributes{};
        attributes.qp_access_flags = 0;
        ASSERT_EQ(ibv_modify_qp(pair.raw(), &attributes, IBV_QP_ACCESS_FLAGS), 0);
    });
    EXPECT_GT(outcome.cut, count / 2);
    std::cout << "access flag: memory changed after it was dropped in " << outcome.changed << " of " << count
              << " rounds" << (outcome.changed == 0 ? ": no difference could be shown here" : "") << std::endl;
    RecordProperty("changed", outcome.changed);
}

}  // namespace
}  // namespace lockstep::transport::contract
