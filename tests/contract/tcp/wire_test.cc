// The TCP transport's parsers and its receiving end of a lane, as functions of bytes.
#include "transport/link/frames.h"
#include "transport/link/handshake.h"
#include "transport/tcp/lane_receiver.h"
#include "transport/link/memory.h"
#include "transport/tcp/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace lockstep::transport::tcp {

using namespace link;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

template <class Header>
void append(std::string& out, const Header& header) {
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
}

TEST(Handshake, hello_comes_back_as_it_was_and_needs_all_its_bytes) {
    Hello hello;
    hello.cluster_id = 0x1122334455667788;
    hello.sender = {1};
    hello.target = {255};
    hello.incarnation = {~std::uint64_t{0}};
    hello.ring_bytes = 1 << 20;
    hello.kind = LinkKind::lane;
    hello.token.fill(std::byte{0xab});
    const std::string bytes = encode(hello);
    ASSERT_LE(bytes.size(), kMaxHandshakeBytes);
    for (std::size_t count = 0; count < bytes.size(); ++count) {
        const auto parsed = parse_hello(bytes_of(bytes).first(count));
        ASSERT_TRUE(parsed.ok()) << count;
        ASSERT_FALSE(parsed.value().has_value()) << count;
    }
    const std::string more = bytes + "more";
    const auto parsed = parse_hello(bytes_of(more));
    ASSERT_TRUE(parsed.ok() && parsed.value());
    EXPECT_EQ(parsed.value()->bytes, bytes.size());
    const Hello& back = parsed.value()->message;
    EXPECT_EQ(back.version, kProtocolVersion);
    EXPECT_EQ(back.cluster_id, hello.cluster_id);
    EXPECT_EQ(back.sender, hello.sender);
    EXPECT_EQ(back.target, hello.target);
    EXPECT_EQ(back.incarnation, hello.incarnation);
    EXPECT_EQ(back.ring_bytes, hello.ring_bytes);
    EXPECT_EQ(back.kind, hello.kind);
    EXPECT_EQ(back.token, hello.token);
}

TEST(Handshake, answer_comes_back_as_it_was_and_a_long_refusal_is_cut) {
    const std::string ok = encode(Answer{true, {3}, {77}, {}});
    const auto parsed = parse_answer(bytes_of(ok));
    ASSERT_TRUE(parsed.ok() && parsed.value());
    EXPECT_TRUE(parsed.value()->message.ok);
    EXPECT_EQ(parsed.value()->message.replica, ReplicaId{3});
    EXPECT_EQ(parsed.value()->message.incarnation, Incarnation{77});
    const std::string refusal = encode(Answer{false, {}, {}, "no\x1b[2J" + std::string(5000, 'x')});
    ASSERT_LE(refusal.size(), kMaxHandshakeBytes);
    const auto refused = parse_answer(bytes_of(refusal));
    ASSERT_TRUE(refused.ok() && refused.value());
    EXPECT_FALSE(refused.value()->message.ok);
    EXPECT_EQ(refused.value()->message.refusal.find("no?[2Jxxx"), 0u);
}

TEST(Handshake, hello_is_no_answer) {
    EXPECT_FALSE(parse_answer(bytes_of(encode(Hello()))).ok());
    EXPECT_FALSE(parse_hello(bytes_of(encode(Answer()))).ok());
}

TEST(Handshake, stranger_is_known_by_the_first_byte) {
    EXPECT_FALSE(parse_hello(bytes_of("G")).ok());
    EXPECT_FALSE(parse_hello(bytes_of("LK\n")).ok());
}

// However the stream is cut into receives, through the staging buffer or straight, the same bytes land.
TEST(LaneReceiver, lands_the_same_however_the_stream_is_cut) {
    constexpr std::uint64_t kRing = 64 * 1024;
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
        std::string stream;
        std::string expected(kRing, '\0');
        Position at{random() % 8 * 64};
        const Position base = at;
        std::uint64_t frames = 0;
        std::uint64_t probe = 0;
        for (; frames < 1 + random() % 40; ++frames) {
            if (random() % 4 == 0) {
                probe = random();
                append(stream, LaneHeader{probe, 0, LaneKind::probe, kLaneMark});
                continue;
            }
            const std::uint64_t bytes = std::min(kRing - at.value % kRing, 1 + random() % 5000);
            std::string body(bytes, static_cast<char>('a' + frames % 26));
            expected.replace(at.value % kRing, bytes, body);
            append(stream, LaneHeader{at.value, static_cast<std::uint32_t>(bytes), LaneKind::write, kLaneMark});
            stream += body;
            at = Position{(at.value + bytes + 63) / 64 * 64};
        }
        auto memory = RingMemory::map(kRing);
        ASSERT_TRUE(memory.ok());
        LaneReceiver receiver(memory.value(), base);
        std::span<const std::byte> left = bytes_of(stream);
        while (!left.empty()) {
            const std::size_t count = std::min<std::size_t>(left.size(), 1 + random() % 3000);
            const std::span<std::byte> rest = receiver.rest();
            if (!rest.empty() && random() % 2 == 0) {
                const std::size_t straight = std::min(count, rest.size());
                std::memcpy(rest.data(), left.data(), straight);
                receiver.took(straight);
                left = left.subspan(straight);
                continue;
            }
            ASSERT_TRUE(receiver.take(left.first(count)).ok());
            left = left.subspan(count);
        }
        EXPECT_EQ(receiver.count(), frames);
        EXPECT_TRUE(receiver.rest().empty());
        EXPECT_EQ(std::memcmp(memory.value().ring().data(), expected.data(), kRing), 0);
        EXPECT_EQ(std::memcmp(memory.value().probe_line().data(), &probe, sizeof probe), 0);
    }
}

TEST(LaneReceiver, header_is_checked_before_a_byte_lands) {
    auto memory = RingMemory::map(4096);
    ASSERT_TRUE(memory.ok());
    LaneReceiver receiver(memory.value(), {0});
    std::string stream;
    append(stream, LaneHeader{0, 8, LaneKind::write, kLaneMark});
    stream += "12345678";
    append(stream, LaneHeader{0, 8, LaneKind::write, kLaneMark});  // before the end of the last one
    stream += "abcdefgh";
    EXPECT_FALSE(receiver.take(bytes_of(stream)).ok());
    EXPECT_EQ(receiver.count(), 1u);
    EXPECT_EQ(receiver.landed(), Position{8});
    EXPECT_EQ(std::memcmp(memory.value().ring().data(), "12345678\0\0", 10), 0);
}

TEST(FrameBuffer, cuts_the_same_frames_however_the_stream_is_cut) {
    std::mt19937_64 random(2);
    std::string stream;
    std::vector<std::string> messages;
    for (int i = 0; i < 50; ++i) {
        messages.emplace_back(random() % 3 == 0 ? random() % (kMaxMessageBytes + 1) : random() % 100,
                              static_cast<char>('a' + i % 26));
        append(stream,
               ControlHeader{ControlKind::message, static_cast<std::uint32_t>(messages.back().size()), 0, 0, 0});
        stream += messages.back();
    }
    for (int round = 0; round < 20; ++round) {
        FrameBuffer buffer(Expect::requests, 4096);
        std::span<const std::byte> left = bytes_of(stream);
        std::size_t found = 0;
        while (!left.empty()) {
            const std::span<std::byte> room = buffer.room();
            ASSERT_FALSE(room.empty());
            const std::size_t count = std::min({left.size(), room.size(), std::size_t{1 + random() % 100'000}});
            std::memcpy(room.data(), left.data(), count);
            buffer.add(count);
            left = left.subspan(count);
            for (;;) {
                const auto frame = buffer.next();
                ASSERT_TRUE(frame.ok());
                if (!frame.value()) break;
                ASSERT_LT(found, messages.size());
                const auto payload = frame.value()->payload;
                EXPECT_EQ(std::string(reinterpret_cast<const char*>(payload.data()), payload.size()), messages[found]);
                ++found;
            }
        }
        EXPECT_EQ(found, messages.size());
    }
}

TEST(BoardCell, reader_and_writer_in_two_threads_never_make_a_torn_board_look_intact) {
    BoardCell cell;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        Board board;
        while (!stop.load()) {
            ++board.heartbeats;
            board.applied = {board.heartbeats};
            board.commit_checksum = board.heartbeats;
            board.seal();
            cell.publish(board);
        }
    });
    std::uint64_t before = 0;
    int changes = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (changes < 100 && std::chrono::steady_clock::now() < deadline) {
        const Board board = cell.read();
        if (!board.intact()) continue;
        EXPECT_EQ(board.applied.value, board.heartbeats);
        EXPECT_GE(board.heartbeats, before);
        changes += board.heartbeats != before;
        before = board.heartbeats;
    }
    stop = true;
    writer.join();
    EXPECT_EQ(changes, 100);
}

}  // namespace
}  // namespace lockstep::transport::tcp
