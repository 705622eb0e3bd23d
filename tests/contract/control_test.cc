// Control messages, reports, peers that come and go, and waiting: F7, F8.
#include "tests/contract/fixture.h"

#include <algorithm>
#include <thread>

namespace lockstep::transport::contract {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Report report_of(std::uint64_t ballot, std::uint64_t open_number, std::uint64_t sequence) {
    Report report;
    report.ballot = {ballot};
    report.incarnation = {1};
    report.open_number = open_number;
    report.sequence = sequence;
    report.consumed = {sequence * 64};
    return report;
}

TEST_P(Contract, f7_messages_arrive_unaltered_with_their_sender) {
    start_all();
    std::string large(kMaxMessageBytes, ' ');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(pattern(i, 1));
    for (const std::string& message : {std::string("hello"), std::string(), large}) {
        const auto arrived = [&] {
            const auto& events = seen(r2);
            return std::any_of(events.begin(), events.end(), [&](const Seen& one) {
                return one.event.kind == EventKind::message && one.event.peer == r1 &&
                       one.event.incarnation == Incarnation{1} && one.bytes == message;
            });
        };
        // Messages can be lost: it is sent again until it has come.
        std::size_t turn = 0;
        ASSERT_TRUE(until({r1, r2}, [&] {
            if (turn++ % 200 == 0) fabric(r1).send(r2, bytes_of(message));
            return arrived();
        }));
    }
    for (const Seen& one : seen(r3)) EXPECT_NE(one.event.kind, EventKind::message);
}

TEST_P(Contract, f7_messages_to_a_peer_that_does_not_look_are_bounded) {
    start_all();
    const std::string message(32 * 1024, 'x');
    // 64 MiB, more than any queue should hold; the peer is not polled.
    for (int i = 0; i < 2048; ++i) {
        fabric(r1).send(r2, bytes_of(message));
        poll(r1, 0ns);
    }
    seen(r2).clear();
    // The link still works: a board is read, and after the peer has looked a message comes through again.
    fabric(r1).read_board(r2);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::board, r2) == 1; }));
    poll(r2, 0ns);
    EXPECT_LT(count(r2, EventKind::message, r1), 2048u);
    std::size_t turn = 0;
    ASSERT_TRUE(until({r1, r2}, [&] {
        if (turn++ % 200 == 0) fabric(r1).send(r2, bytes_of("last"));
        const Seen* one = last(r2, EventKind::message, r1);
        return one != nullptr && one->bytes == "last";
    }));
}

TEST_P(Contract, report_reaches_a_peer_that_looks_later_and_the_newest_wins) {
    start_all();
    for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
        fabric(r1).write_report(r2, report_of(5, 1, sequence));
        fabric(r1).flush();
        poll(r1, 0ns);
    }
    ASSERT_TRUE(until({r1, r2}, [&] {
        const Seen* one = last(r2, EventKind::report, r1);
        return one != nullptr && one->event.report.sequence == 20;
    }));
    EXPECT_EQ(last(r2, EventKind::report, r1)->event.report.consumed, Position{20 * 64});
    std::uint64_t before = 0;
    for (const Seen& one : seen(r2)) {
        if (one.event.kind != EventKind::report) continue;
        EXPECT_GT(one.event.report.sequence, before);
        before = one.event.report.sequence;
    }
}

TEST_P(Contract, older_report_does_not_replace_a_newer_one) {
    start_all();
    const auto at_peer = [&](std::uint64_t ballot, std::uint64_t open_number, std::uint64_t sequence) {
        const Seen* one = last(r2, EventKind::report, r1);
        return one != nullptr && one->event.report.ballot == Ballot{ballot} &&
               one->event.report.open_number == open_number && one->event.report.sequence == sequence;
    };
    fabric(r1).write_report(r2, report_of(5, 2, 10));
    ASSERT_TRUE(until({r1, r2}, [&] { return at_peer(5, 2, 10); }));
    for (const Report& old : {report_of(5, 2, 9), report_of(5, 1, 99), report_of(4, 9, 99), report_of(5, 2, 10)}) {
        fabric(r1).write_report(r2, old);
        run_for({r1, r2}, 5ms);
        EXPECT_TRUE(at_peer(5, 2, 10));
    }
    fabric(r1).write_report(r2, report_of(5, 3, 1));
    ASSERT_TRUE(until({r1, r2}, [&] { return at_peer(5, 3, 1); }));
    fabric(r1).write_report(r2, report_of(6, 1, 0));
    ASSERT_TRUE(until({r1, r2}, [&] { return at_peer(6, 1, 0); }));
    EXPECT_EQ(count(r2, EventKind::report, r1), 3u);
}

TEST_P(Contract, reports_of_two_peers_have_a_slot_each) {
    start_all();
    fabric(r1).write_report(r2, report_of(9, 1, 1));
    fabric(r3).write_report(r2, report_of(1, 1, 1));
    ASSERT_TRUE(until({r1, r2, r3}, [&] {
        return count(r2, EventKind::report, r1) == 1 && count(r2, EventKind::report, r3) == 1;
    }));
    EXPECT_EQ(last(r2, EventKind::report, r1)->event.report.ballot, Ballot{9});
    EXPECT_EQ(last(r2, EventKind::report, r3)->event.report.ballot, Ballot{1});
}

TEST_P(Contract, peer_up_names_the_incarnation_and_path_the_way) {
    start_all();
    EXPECT_EQ(last(r1, EventKind::peer_up, r2)->event.incarnation, Incarnation{2});
    EXPECT_EQ(last(r1, EventKind::peer_up, r3)->event.incarnation, Incarnation{3});
    EXPECT_EQ(fabric(r1).path(r2).find("not reached"), std::string::npos) << fabric(r1).path(r2);
    EXPECT_NE(fabric(r1).path({200}).find("not reached"), std::string::npos);
}

TEST_P(Contract, death_of_a_peer_is_noticed_at_once_and_breaks_its_lane) {
    start_all();
    const LaneId lane = open_lane(r1, r2);
    ASSERT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
    const auto start = std::chrono::steady_clock::now();
    kill(r2);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::peer_down, r2) == 1 && broken(r1, lane); }));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
    EXPECT_TRUE(last(r1, EventKind::peer_down, r2)->event.suspect_dead);
    EXPECT_FALSE(last(r1, EventKind::peer_down, r2)->event.why.empty());
    EXPECT_NE(fabric(r1).path(r2).find("not reached"), std::string::npos);
    EXPECT_FALSE(fabric(r1).write(lane, {64}, 64));
}

TEST_P(Contract, peer_that_comes_back_is_another_life) {
    start_all();
    kill(r2);
    ASSERT_TRUE(until({r1}, [&] { return count(r1, EventKind::peer_down, r2) == 1; }));
    // Without effect on a peer that is down.
    fabric(r1).send(r2, bytes_of("nobody there"));
    fabric(r1).write_report(r2, report_of(1, 1, 1));
    fabric(r1).read_board(r2);
    start({r2, {22}});
    ASSERT_TRUE(until({r1, r2}, [&] {
        return count(r1, EventKind::peer_up, r2) == 2 && count(r2, EventKind::peer_up, r1) >= 1;
    }));
    EXPECT_EQ(last(r1, EventKind::peer_up, r2)->event.incarnation, Incarnation{22});
    EXPECT_EQ(count(r2, EventKind::message, r1), 0u);
    const LaneId lane = open_lane(r1, r2);
    EXPECT_TRUE(write_lands(r1, lane, {0}, 64, 1, 1));
}

TEST_P(Contract, report_of_a_new_life_counts_though_its_numbers_are_lower) {
    start_all();
    fabric(r2).write_report(r1, report_of(9, 9, 9));
    ASSERT_TRUE(until({r1, r2}, [&] { return count(r1, EventKind::report, r2) == 1; }));
    kill(r2);
    start({r2, {22}});
    seen(r2).clear();
    ASSERT_TRUE(until({r1, r2}, [&] { return count(r2, EventKind::peer_up, r1) >= 1; }));
    fabric(r2).write_report(r1, report_of(1, 1, 1));
    ASSERT_TRUE(until({r1, r2}, [&] { return count(r1, EventKind::report, r2) == 2; }));
    EXPECT_EQ(last(r1, EventKind::report, r2)->event.incarnation, Incarnation{22});
}

TEST_P(Contract, f8_fault_of_one_peer_disturbs_no_other) {
    start_all();
    const LaneId sound = open_lane(r1, r2);
    const LaneId faulty = open_lane(r1, r3);
    fill(r1, {0}, 1 << 20, 1);
    Position at;
    std::uint64_t posted = 0;
    bool killed = false;
    // The same bytes to both; one dies in the middle.
    ASSERT_TRUE(until({r1}, [&] {
        while (at.value < 1 << 20) {
            if (!fabric(r1).write(sound, at, 4096)) break;
            fabric(r1).write(faulty, at, 4096);
            at = at + 4096;
            ++posted;
        }
        fabric(r1).flush();
        if (posted >= 128 && !killed) {
            kill(r3);
            killed = true;
        }
        return landed(r1, sound) == 256 && broken(r1, faulty);
    }));
    EXPECT_FALSE(broken(r1, sound));
    EXPECT_EQ(count(r1, EventKind::peer_down, r2), 0u);
    fabric(r2).revoke_incoming();
    EXPECT_EQ(difference(r2, {0}, 1 << 20, 1), std::nullopt);
    std::size_t turn = 0;
    ASSERT_TRUE(until({r1, r2}, [&] {
        if (turn++ % 200 == 0) fabric(r1).send(r2, bytes_of("still here"));
        return count(r2, EventKind::message, r1) > 0;
    }));
}

TEST_P(Contract, f7_handshake_refuses_another_cluster_id) {
    start({r1, {1}, 7});
    start({r2, {2}, 8});
    ASSERT_TRUE(until({r1, r2}, [&] {
        return fabric(r1).path(r2).find("cluster") != std::string::npos &&
               fabric(r2).path(r1).find("cluster") != std::string::npos;
    })) << fabric(r1).path(r2);
    EXPECT_EQ(count(r1, EventKind::peer_up, r2), 0u);
    EXPECT_EQ(count(r2, EventKind::peer_up, r1), 0u);
}

TEST_P(Contract, f7_handshake_refuses_another_ring_size) {
    start({r1, {1}, 7, std::uint64_t{1} << 20});
    start({r2, {2}, 7, std::uint64_t{2} << 20});
    ASSERT_TRUE(until({r1, r2}, [&] {
        return fabric(r1).path(r2).find("ring_bytes") != std::string::npos &&
               fabric(r2).path(r1).find("ring_bytes") != std::string::npos;
    })) << fabric(r1).path(r2);
    EXPECT_EQ(count(r1, EventKind::peer_up, r2), 0u);
    EXPECT_EQ(count(r2, EventKind::peer_up, r1), 0u);
}

TEST_P(Contract, wake_ends_a_poll_from_another_thread_and_the_next_poll_if_none_runs) {
    Fabric& one = start({r1});
    one.wake();
    auto start_time = std::chrono::steady_clock::now();
    poll(r1, kDeadline);
    EXPECT_LT(std::chrono::steady_clock::now() - start_time, kDeadline / 2);
    for (int round = 0; round < 50; ++round) {
        start_time = std::chrono::steady_clock::now();
        std::thread other([&] { one.wake(); });
        poll(r1, kDeadline);
        EXPECT_LT(std::chrono::steady_clock::now() - start_time, kDeadline / 2);
        other.join();
    }
}

TEST_P(Contract, poll_returns_when_its_wait_is_over) {
    start({r1});
    const auto start_time = std::chrono::steady_clock::now();
    for (const auto wait : {0ns, 1ns, 50'000ns, 900'000ns, 7'000'000ns}) poll(r1, wait);
    EXPECT_LT(std::chrono::steady_clock::now() - start_time, kDeadline / 2);
}

}  // namespace
}  // namespace lockstep::transport::contract
