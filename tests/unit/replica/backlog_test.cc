// The log that is kept in memory for one that catches up.
#include "consensus/replica/backlog.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep::replica {
namespace {

constexpr std::uint64_t kRing = std::uint64_t{1} << 20;

class BacklogTest : public testing::Test {
 protected:
    struct alignas(64) Memory {
        std::byte bytes[kRing];
    };
    // As if the log were written from `from` on: the byte at a position says which it is.
    void write(Position from, Position to) {
        for (Position at = from; at < to; at = at + 1) *ring_.at(at) = byte_of(at);
    }
    static std::byte byte_of(Position at) { return static_cast<std::byte>(at.value * 31 >> 8 ^ at.value); }
    std::vector<std::byte> read(Position at, std::uint64_t bytes) {
        backlog_.read(ReplicaId{2}, at, bytes);
        std::vector<LogBytes> read;
        backlog_.take(read);
        EXPECT_EQ(read.size(), 1u);
        EXPECT_EQ(read.at(0).at, at);
        return read.at(0).bytes;
    }

    std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
    log::Ring ring_{std::span<std::byte>(memory_->bytes)};
    Backlog backlog_{ring_, 4 * kRing};
};

TEST_F(BacklogTest, holds_what_the_ring_has_overwritten) {
    EXPECT_EQ(backlog_.begin(), log::kNoLimit);
    const Position begin{kRing - 640};
    backlog_.start(begin);
    for (Position at = begin; at.value < 4 * kRing; at = at + 100'032) {
        write(at, at + 100'032);
        backlog_.extend(at + 100'032);
    }
    EXPECT_EQ(backlog_.begin(), begin);
    EXPECT_FALSE(backlog_.full());
    std::uint64_t checked = 0;
    for (Position at = begin; at.value < 3 * kRing;) {
        const auto bytes = read(at, 40'000);
        ASSERT_FALSE(bytes.empty());
        for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], byte_of(at + i)) << at.value + i;
        at = at + bytes.size();
        checked += bytes.size();
    }
    EXPECT_GT(checked, 2 * kRing - 1000);
}

TEST_F(BacklogTest, is_full_at_its_bound_until_it_stops) {
    backlog_.start({0});
    Position at{0};
    while (!backlog_.full()) {
        at = at + 65'536;
        backlog_.extend(at);
        ASSERT_LE(at.value, 5 * kRing);
    }
    EXPECT_GT(at.value, 4 * kRing);
    backlog_.forget({2 * kRing});
    EXPECT_TRUE(backlog_.full());
    EXPECT_LE(backlog_.begin().value, 2 * kRing);
    EXPECT_GT(backlog_.begin().value, kRing);
    EXPECT_TRUE(read({0}, 64).empty());  // gone
    backlog_.stop();
    EXPECT_FALSE(backlog_.full());
    EXPECT_EQ(backlog_.begin(), log::kNoLimit);
}

}  // namespace
}  // namespace lockstep::replica
