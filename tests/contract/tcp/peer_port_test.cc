// What the peer port makes of callers that are no sound replica: refusals, garbage, frames out of bounds, floods.
#include "tests/contract/tcp/raw_peer.h"
#include "transport/link/mailbox.h"
#include "transport/tcp/fabric.h"
#include "transport/tcp/wire.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include <fcntl.h>
#include <xxhash.h>

namespace lockstep::transport::contract {
namespace {

using namespace std::chrono_literals;
using link::Hello;

constexpr std::uint64_t kRing = std::uint64_t{1} << 20;

class PeerPort : public testing::Test {
 protected:
    void SetUp() override {
        tcp::TcpOptions options;
        options.cluster_id = 7;
        options.id = {2};
        options.incarnation = {22};
        options.ring_bytes = kRing;
        options.peers = {{{1}, "127.0.0.1", 0}, {{3}, "127.0.0.1", 0}};
        options.handshake_timeout = 1s;
        auto opened = tcp::TcpFabric::open(options);
        ASSERT_TRUE(opened.ok()) << opened.error().message();
        fabric_ = std::move(opened).value();
    }

    RawPeer caller() { return RawPeer(fabric_->listen_port()); }

    static Hello hello() {
        Hello sound;
        sound.cluster_id = 7;
        sound.sender = {1};
        sound.target = {2};
        sound.incarnation = {11};
        sound.ring_bytes = kRing;
        return sound;
    }

    // What the fabric says to a hello.
    link::Answer answer_to(const Hello& said) {
        RawPeer peer = caller();
        peer.send(encode(said));
        const link::Answer answer = peer.answer();
        EXPECT_TRUE(answer.ok || peer.is_closed());
        return answer;
    }

    // A caller whose hello for a control connection was accepted.
    RawPeer control() {
        RawPeer peer = caller();
        peer.send(encode(hello()));
        EXPECT_TRUE(peer.answer().ok);
        return peer;
    }

    Hello lane_hello(Position base = {}) {
        Hello said = hello();
        said.kind = link::LinkKind::lane;
        const auto address = fabric_->open_incoming({1}, {11}, base);
        EXPECT_TRUE(address.ok());
        if (address) std::memcpy(said.token.data(), address.value().bytes.data(), said.token.size());
        return said;
    }

    std::uint64_t hash() { return XXH3_64bits(fabric_->ring().data(), kRing + kProbeLineBytes); }

    // A board read, as a sign of life.
    bool works() {
        RawPeer peer = control();
        peer.send(bytes_of(link::ControlHeader{link::ControlKind::ask_board, 0, 0, 0, 0}));
        return peer.receive(sizeof(link::ControlHeader) + sizeof(Board)).size() ==
               sizeof(link::ControlHeader) + sizeof(Board);
    }

    std::unique_ptr<tcp::TcpFabric> fabric_;
};

TEST_F(PeerPort, sound_hello_is_answered_with_id_and_incarnation) {
    const link::Answer answer = answer_to(hello());
    EXPECT_TRUE(answer.ok) << answer.refusal;
    EXPECT_EQ(answer.replica, ReplicaId{2});
    EXPECT_EQ(answer.incarnation, Incarnation{22});
}

TEST_F(PeerPort, refusals_name_the_thing_and_the_remedy_and_give_nothing_away) {
    struct Case {
        const char* name;
        void (*spoil)(Hello&);
        const char* says;
    };
    const Case cases[] = {
        {"version", [](Hello& said) { said.version = 99; }, "protocol version 99"},
        {"cluster", [](Hello& said) { said.cluster_id = 8; }, "cluster id 8"},
        {"target", [](Hello& said) { said.target = {3}; }, "means to reach r3"},
        {"unknown sender", [](Hello& said) { said.sender = {9}; }, "no peer of that id"},
        {"itself", [](Hello& said) { said.sender = {2}; }, "no peer of that id"},
        {"incarnation", [](Hello& said) { said.incarnation = {0}; }, "no incarnation"},
        {"ring", [](Hello& said) { said.ring_bytes = 4096; }, "ring_bytes"},
        {"lane token", [](Hello& said) { said.kind = link::LinkKind::lane; }, "token"},
    };
    for (const Case& one : cases) {
        Hello said = hello();
        one.spoil(said);
        const link::Answer answer = answer_to(said);
        EXPECT_FALSE(answer.ok) << one.name;
        EXPECT_NE(answer.refusal.find(one.says), std::string::npos) << one.name << ": " << answer.refusal;
        EXPECT_EQ(answer.incarnation, Incarnation{}) << one.name;
        EXPECT_EQ(answer.refusal.find("22"), std::string::npos) << one.name << ": " << answer.refusal;
    }
    EXPECT_TRUE(works());
}

TEST_F(PeerPort, frames_behind_a_refused_hello_do_nothing) {
    RawPeer peer = caller();
    Hello said = lane_hello();
    said.token[0] ^= std::byte{1};
    const std::uint64_t before = hash();
    peer.send(encode(said) + std::string(bytes_of(tcp::LaneHeader{0, 64, tcp::LaneKind::write, tcp::kLaneMark})) +
              std::string(64, 'x'));
    EXPECT_FALSE(peer.answer().ok);
    EXPECT_TRUE(peer.is_closed());
    EXPECT_EQ(hash(), before);
}

TEST_F(PeerPort, garbage_is_shown_the_door) {
    std::mt19937_64 random(1);
    const std::uint64_t before = hash();
    for (int round = 0; round < 300; ++round) {
        RawPeer peer = caller();
        ASSERT_TRUE(peer.connected());
        std::string bytes(1 + random() % 3000, ' ');
        for (char& one : bytes) one = static_cast<char>(random());
        // Some begin like a hello, some are one whose middle has rotted, some have a sound one in front.
        if (round % 4 == 1) bytes.replace(0, std::min<std::size_t>(4, bytes.size()), "LKSH");
        if (round % 4 == 2) {
            bytes = encode(hello());
            bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
        }
        if (round % 4 == 3) bytes = encode(hello()) + bytes;
        peer.send(bytes);
    }
    EXPECT_EQ(hash(), before);
    EXPECT_TRUE(works());
    std::vector<Event> events;
    fabric_->poll(0ns, events);
}

TEST_F(PeerPort, oversize_hello_is_refused_before_it_has_come) {
    RawPeer peer = caller();
    const std::uint32_t prelude[] = {0x48534b4c, 0x7fffffff};
    peer.send({reinterpret_cast<const char*>(prelude), sizeof prelude});
    EXPECT_TRUE(peer.is_closed());
}

TEST_F(PeerPort, caller_that_says_nothing_is_closed_in_time) {
    const auto start = std::chrono::steady_clock::now();
    RawPeer silent = caller();
    RawPeer halfway = caller();
    halfway.send(encode(hello()).substr(0, 20));
    EXPECT_TRUE(silent.is_closed());
    EXPECT_TRUE(halfway.is_closed());
    EXPECT_GE(std::chrono::steady_clock::now() - start, 900ms);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 8s);
}

TEST_F(PeerPort, many_silent_callers_keep_nobody_out) {
    std::vector<RawPeer> silent;
    for (int i = 0; i < 300; ++i) silent.push_back(caller());
    EXPECT_TRUE(works());
}

TEST_F(PeerPort, hello_that_comes_in_pieces_with_frames_behind_it_is_understood) {
    const std::string bytes = encode(lane_hello()) +
                              std::string(bytes_of(tcp::LaneHeader{64, 64, tcp::LaneKind::write, tcp::kLaneMark})) +
                              std::string(64, 'x') +
                              std::string(bytes_of(tcp::LaneHeader{5, 0, tcp::LaneKind::probe, tcp::kLaneMark}));
    RawPeer peer = caller();
    for (const char byte : bytes) peer.send({&byte, 1});
    EXPECT_TRUE(peer.answer().ok);
    std::uint64_t count = 0;
    while (count < 2) {
        const std::string ack = peer.receive(sizeof count);
        ASSERT_EQ(ack.size(), sizeof count);
        std::memcpy(&count, ack.data(), sizeof count);
    }
    fabric_->revoke_incoming();
    EXPECT_EQ(fabric_->ring()[64], std::byte{'x'});
    EXPECT_EQ(fabric_->ring()[127], std::byte{'x'});
    EXPECT_EQ(fabric_->ring().data()[kRing], std::byte{5});
}

TEST_F(PeerPort, lane_frame_out_of_bounds_ends_the_lane_and_reaches_nothing) {
    using tcp::LaneHeader;
    using tcp::LaneKind;
    const LaneHeader bad[] = {
        {4096 - 64, 64, LaneKind::write, tcp::kLaneMark},              // before the base
        {4096 + 4, 64, LaneKind::write, tcp::kLaneMark},               // unaligned
        {kRing - 64, 128, LaneKind::write, tcp::kLaneMark},            // across the ring's end
        {4096 + kRing, 64, LaneKind::write, tcp::kLaneMark},           // more than a lap ahead
        {~std::uint64_t{0} - 7, 8, LaneKind::write, tcp::kLaneMark},   // the end of all positions
        {4096, 0, LaneKind::write, tcp::kLaneMark},                    // nothing
        {4096, 0xffffffff, LaneKind::write, tcp::kLaneMark},           // too much
        {4096, 64, LaneKind::write, 0},                                // out of step
        {4096, 64, LaneKind{7}, tcp::kLaneMark},                       // no such kind
        {4096, 8, LaneKind::probe, tcp::kLaneMark},                    // a probe with a body
    };
    for (const LaneHeader& header : bad) {
        RawPeer peer = caller();
        peer.send(encode(lane_hello({4096})));
        ASSERT_TRUE(peer.answer().ok);
        const std::uint64_t before = hash();
        peer.send(std::string(bytes_of(header)) + std::string(256, 'x'));
        EXPECT_TRUE(peer.is_closed()) << header.at << " " << header.bytes;
        fabric_->revoke_incoming();
        EXPECT_EQ(hash(), before) << header.at << " " << header.bytes;
    }
    EXPECT_TRUE(works());
}

// A replica that would like RDMA learns so that this one has none.
TEST_F(PeerPort, call_to_a_transport_that_takes_none_gets_an_empty_reply) {
    using link::ControlHeader;
    using link::ControlKind;
    RawPeer peer = control();
    ASSERT_TRUE(peer.send(std::string(bytes_of(ControlHeader{ControlKind::call, 8, 5, 0, 0})) + "whatever"));
    EXPECT_EQ(peer.receive(sizeof(ControlHeader)), bytes_of(ControlHeader{ControlKind::reply, 0, 5, 0, 0}));
}

TEST_F(PeerPort, control_frame_out_of_bounds_ends_the_connection) {
    using link::ControlHeader;
    using link::ControlKind;
    const ControlHeader bad[] = {
        {ControlKind::message, kMaxMessageBytes + 1, 0, 0, 0},
        {ControlKind::report, 63, 0, 0, 0},
        {ControlKind::ask_board, 1, 0, 0, 0},
        {ControlKind::ask_ring, 0, 1, 0, 0},
        {ControlKind::ask_ring, 0, 1, 0, kMaxTransferBytes + 1},
        {ControlKind::ask_ring, 0, 1, kRing - 8, 16},
        {ControlKind::ask_ring, 0, 1, 0, ~std::uint64_t{0}},
        {ControlKind::board, 64, 0, 0, 0},
        {ControlKind::reply, 8, 1, 0, 0},
        {ControlKind{99}, 0, 0, 0, 0},
    };
    for (const ControlHeader& header : bad) {
        RawPeer peer = control();
        peer.send(std::string(bytes_of(header)) + std::string(256, 'x'));
        EXPECT_TRUE(peer.is_closed()) << static_cast<std::uint32_t>(header.kind);
    }
    RawPeer greedy = control();
    std::string reads;
    for (int i = 0; i < 10'000; ++i)
        reads += bytes_of(ControlHeader{ControlKind::ask_ring, 0, 1, 0, kMaxTransferBytes});
    greedy.send(reads);
    EXPECT_TRUE(greedy.is_closed());
    EXPECT_TRUE(works());
}

TEST_F(PeerPort, flood_of_messages_is_bounded) {
    RawPeer peer = control();
    const std::string small(bytes_of(link::ControlHeader{link::ControlKind::message, 0, 0, 0, 0}));
    std::string many;
    for (int i = 0; i < 1000; ++i) many += small;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(peer.send(many));
    // An answer comes behind them: all have been looked at.
    peer.send(bytes_of(link::ControlHeader{link::ControlKind::ask_board, 0, 0, 0, 0}));
    ASSERT_EQ(peer.receive(sizeof(link::ControlHeader)).size(), sizeof(link::ControlHeader));
    std::vector<Event> events;
    fabric_->poll(0ns, events);
    EXPECT_EQ(events.size(), link::kMaxQueuedMessages);
}

TEST_F(PeerPort, peer_that_connects_again_replaces_its_old_connection) {
    RawPeer old = control();
    RawPeer next = control();
    EXPECT_TRUE(old.is_closed());
    next.send(bytes_of(link::ControlHeader{link::ControlKind::ask_board, 0, 0, 0, 0}));
    EXPECT_EQ(next.receive(sizeof(link::ControlHeader)).size(), sizeof(link::ControlHeader));
}

TEST_F(PeerPort, holder_that_does_not_take_its_acknowledgements_disturbs_nobody) {
    RawPeer deaf = caller();
    deaf.send(encode(lane_hello()));
    ASSERT_TRUE(deaf.answer().ok);
    // Frames one by one, so that acknowledgements pile up in front of a reader that does not read.
    std::string probes;
    for (int i = 0; i < 64; ++i)
        probes += bytes_of(tcp::LaneHeader{7, 0, tcp::LaneKind::probe, tcp::kLaneMark});
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(deaf.send(probes));
    EXPECT_TRUE(works());
    // And it gets the full count in the end.
    std::uint64_t count = 0;
    while (count < 3000 * 64) {
        const std::string ack = deaf.receive(sizeof count);
        ASSERT_EQ(ack.size(), sizeof count) << count;
        std::memcpy(&count, ack.data(), sizeof count);
    }
    EXPECT_EQ(count, 3000u * 64);
}

TEST_F(PeerPort, no_descriptor_is_left_to_child_processes) {
    RawPeer peer = control();
    RawPeer lane = caller();
    lane.send(encode(lane_hello()));
    ASSERT_TRUE(lane.answer().ok);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int descriptor = std::stoi(entry.path().filename());
        std::error_code gone;
        const std::string what = std::filesystem::read_symlink(entry.path(), gone);
        if (gone || (what.find("socket:") != 0 && what.find("anon_inode:") != 0)) continue;
        EXPECT_TRUE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC) << what;
    }
}

TEST(TcpOptions, that_make_no_sense_are_refused) {
    tcp::TcpOptions sound;
    sound.cluster_id = 7;
    sound.id = {2};
    sound.incarnation = {22};
    sound.ring_bytes = kRing;
    sound.peers = {{{1}, "127.0.0.1", 0}};
    ASSERT_TRUE(tcp::TcpFabric::open(sound).ok());
    const auto refused = [&](auto&& spoil) {
        tcp::TcpOptions options = sound;
        spoil(options);
        const auto opened = tcp::TcpFabric::open(options);
        return !opened.ok() && opened.error().message().find("cannot open the TCP fabric of r") == 0;
    };
    EXPECT_TRUE(refused([](auto& options) { options.cluster_id = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.id = {0}; }));
    EXPECT_TRUE(refused([](auto& options) { options.incarnation = {0}; }));
    EXPECT_TRUE(refused([](auto& options) { options.ring_bytes = 0; }));
    EXPECT_TRUE(refused([](auto& options) { options.ring_bytes = 1000; }));
    EXPECT_TRUE(refused([](auto& options) { options.ring_bytes = 3 * 4096; }));
    EXPECT_TRUE(refused([](auto& options) { options.peers.push_back(options.peers.front()); }));
    EXPECT_TRUE(refused([](auto& options) { options.peers.push_back({{2}, "127.0.0.1", 0}); }));
    EXPECT_TRUE(refused([](auto& options) { options.listen_host = "192.0.2.1"; }));
    EXPECT_TRUE(refused([](auto& options) { options.handshake_timeout = 0ms; }));
    const auto first = tcp::TcpFabric::open(sound);
    EXPECT_TRUE(refused([&](auto& options) { options.listen_port = first.value()->listen_port(); }));
}

TEST(TcpNames, host_that_is_a_name_is_looked_up) {
    tcp::TcpOptions options;
    options.cluster_id = 7;
    options.id = {1};
    options.incarnation = {11};
    options.ring_bytes = kRing;
    options.peers = {{{2}, "localhost", 0}, {{3}, "no-such-host.invalid", 1}};
    auto one = tcp::TcpFabric::open(options);
    ASSERT_TRUE(one.ok());
    options.id = {2};
    options.peers = {{{1}, "127.0.0.1", one.value()->listen_port()}};
    auto two = tcp::TcpFabric::open(options);
    ASSERT_TRUE(two.ok());
    one.value()->set_peer_address({2}, "localhost", two.value()->listen_port());
    std::vector<Event> events;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    bool up = false;
    bool down = false;
    while (!(up && down) && std::chrono::steady_clock::now() < deadline) {
        events.clear();
        one.value()->poll(1ms, events);
        for (const Event& event : events) {
            up |= event.kind == EventKind::peer_up && event.peer == ReplicaId{2};
            down |= event.kind == EventKind::peer_down && event.peer == ReplicaId{3} && !event.suspect_dead;
        }
    }
    EXPECT_TRUE(up) << one.value()->path({2});
    EXPECT_TRUE(down) << one.value()->path({3});
}

}  // namespace
}  // namespace lockstep::transport::contract
