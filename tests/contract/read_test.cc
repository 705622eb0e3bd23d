// One-sided reads, of boards and rings: F6. The peer that is read is never polled: it is not asked.
#include "tests/contract/fixture.h"

#include <cstring>

namespace lockstep::transport::contract {
namespace {

Board board_of(std::uint64_t number) {
    Board board;
    board.heartbeats = number;
    board.promised = Ballot::of(number, r2);
    board.leading = Ballot::of(number + 1, r2);
    board.applied = {number + 2};
    board.durable = {number + 3};
    board.committed = {number + 4};
    board.commit_checksum = number + 5;
    board.seal();
    return board;
}

TEST(Board, that_was_changed_in_any_bit_is_not_intact) {
    const Board sound = board_of(77);
    EXPECT_TRUE(sound.intact());
    for (std::size_t bit = 0; bit < 8 * sizeof(Board); ++bit) {
        unsigned char bytes[sizeof(Board)];
        std::memcpy(bytes, &sound, sizeof bytes);
        bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
        Board torn;
        std::memcpy(static_cast<void*>(&torn), bytes, sizeof bytes);
        EXPECT_FALSE(torn.intact()) << "bit " << bit;
    }
}

TEST(Board, of_two_halves_or_of_zeros_is_not_intact) {
    const Board before = board_of(1);
    const Board after = board_of(2);
    for (std::size_t word = 1; word < sizeof(Board) / 8; ++word) {
        Board torn = before;
        std::memcpy(static_cast<void*>(&torn), &after, 8 * word);
        EXPECT_FALSE(torn.intact()) << word << " words of the new one";
    }
    EXPECT_FALSE(Board().intact());
}

TEST_P(Contract, board_is_read_while_its_owner_does_nothing) {
    start_all();
    for (std::uint64_t number = 1; number <= 200; ++number) {
        const Board board = board_of(number);
        fabric(r2).publish(board);
        const std::size_t before = count(r1, EventKind::board, r2);
        fabric(r1).read_board(r2);
        ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::board, r2) > before; }));
        const Board& found = last(r1, EventKind::board, r2)->event.board;
        ASSERT_TRUE(found.intact());
        ASSERT_EQ(std::memcmp(&found, &board, sizeof board), 0);
    }
}

TEST_P(Contract, board_that_was_never_published_is_not_intact) {
    start_all();
    fabric(r1).read_board(r2);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::board, r2) == 1; }));
    EXPECT_FALSE(last(r1, EventKind::board, r2)->event.board.intact());
}

TEST_P(Contract, second_ask_for_a_board_before_the_answer_has_no_effect) {
    start_all();
    for (std::size_t round = 1; round <= 20; ++round) {
        fabric(r1).read_board(r2);
        fabric(r1).read_board(r2);
        fabric(r1).read_board(r2);
        ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::board, r2) >= round; }));
        ASSERT_EQ(count(r1, EventKind::board, r2), round);
    }
}

TEST_P(Contract, ring_is_read_while_its_owner_does_nothing) {
    start_all(std::uint64_t{4} << 20);
    fill(r2, {0}, std::uint64_t{4} << 20, 5);
    struct Range {
        std::uint64_t at, bytes;
    };
    for (const Range range :
         {Range{0, 64}, Range{1 << 20, 1 << 20}, Range{(4 << 20) - 100, 100}, Range{12345, 54321}}) {
        std::vector<std::byte> into(range.bytes + 2);
        const ReadId read = fresh_read();
        fabric(r1).read_ring(read, r2, {range.at}, std::span(into).subspan(1, range.bytes));
        ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::ring_read, r2) > 0; }));
        EXPECT_EQ(seen(r1).back().event.read, read);
        EXPECT_TRUE(seen(r1).back().event.ok);
        for (std::uint64_t i = 0; i < range.bytes; ++i) ASSERT_EQ(into[1 + i], pattern(range.at + i, 5)) << i;
        EXPECT_EQ(into.front(), std::byte{0});
        EXPECT_EQ(into.back(), std::byte{0});
        seen(r1).clear();
    }
}

TEST_P(Contract, ring_read_of_a_later_lap_reads_the_same_place) {
    start_all(std::uint64_t{1} << 20);
    fill(r2, {0}, 4096, 6);
    std::vector<std::byte> into(4096);
    fabric(r1).read_ring(fresh_read(), r2, {std::uint64_t{3} << 20}, into);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::ring_read, r2) == 1; }));
    EXPECT_EQ(into[17], pattern(17, 6));
}

TEST_P(Contract, every_ring_read_is_answered_however_many) {
    start_all();
    fill(r2, {0}, 64 * 1024, 7);
    std::vector<std::vector<std::byte>> into(100, std::vector<std::byte>(64 * 1024));
    std::map<std::uint64_t, std::size_t> of_read;
    for (std::size_t i = 0; i < into.size(); ++i) {
        const ReadId read = fresh_read();
        of_read[read.value] = i;
        fabric(r1).read_ring(read, r2, {0}, into[i]);
    }
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::ring_read, r2) == into.size(); }));
    run_for({r1}, 5ms);
    EXPECT_EQ(count(r1, EventKind::ring_read, r2), into.size());
    std::size_t good = 0;
    for (const Seen& one : seen(r1)) {
        if (one.event.kind != EventKind::ring_read) continue;
        ASSERT_EQ(of_read.count(one.event.read.value), 1u);
        if (one.event.ok) {
            ++good;
            EXPECT_EQ(into[of_read[one.event.read.value]].back(), pattern(64 * 1024 - 1, 7));
        }
        of_read.erase(one.event.read.value);
    }
    EXPECT_GE(good, 1u);
}

TEST_P(Contract, ring_reads_under_way_end_when_the_peer_dies) {
    start_all();
    std::vector<std::byte> into(1 << 20);
    for (int i = 0; i < 4; ++i) fabric(r1).read_ring(fresh_read(), r2, {0}, into);
    kill(r2);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::ring_read, r2) == 4; }));
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::peer_down, r2) == 1; }));
    // And of a peer that is down already, or is none.
    fabric(r1).read_ring(fresh_read(), r2, {0}, into);
    fabric(r1).read_ring(fresh_read(), {200}, {0}, into);
    ASSERT_TRUE(until({r1}, [&] {
        return count(r1, EventKind::ring_read, r2) == 5 && count(r1, EventKind::ring_read, {200}) == 1;
    }));
    EXPECT_FALSE(last(r1, EventKind::ring_read, r2)->event.ok);
    EXPECT_FALSE(last(r1, EventKind::ring_read, {200})->event.ok);
}

TEST_P(Contract, boards_and_rings_are_read_while_a_lane_storms_the_owner) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    fill(r1, {0}, 1 << 20, 8);
    fabric(r2).publish(board_of(5));
    Position at;
    std::vector<std::byte> into(256 * 1024);
    std::size_t reads = 0;
    fabric(r3).read_ring(fresh_read(), r2, {0}, into);
    fabric(r3).read_board(r2);
    ASSERT_TRUE(until({r1, r3}, [&] {
        for (int more = 0; more < 16; ++more) {
            if (!fabric(r1).write(lane, at, 64 * 1024)) break;
            at = at + 64 * 1024;
        }
        fabric(r1).flush();
        if (count(r3, EventKind::ring_read, r2) > reads && count(r3, EventKind::board, r2) > reads) {
            ++reads;
            fabric(r3).read_ring(fresh_read(), r2, {0}, into);
            fabric(r3).read_board(r2);
        }
        return reads == 20;
    }));
    EXPECT_FALSE(broken(r1, lane));
    for (const Seen& one : seen(r3))
        EXPECT_TRUE(one.event.kind != EventKind::board || one.event.board.intact());
}

}  // namespace
}  // namespace lockstep::transport::contract
