// The ring and its entries: geometry, pads, bounds, limits, and what is no entry.
#include "tests/unit/log/naive_reader.h"
#include "tests/unit/log/test_ring.h"

#include <gtest/gtest.h>

namespace lockstep::log {
namespace {

constexpr std::uint64_t kGenesis = 0x5eed'0000'1234'5678;

Point start_of_log() { return Point{.index = {}, .position = {}, .checksum = kGenesis, .ballot = {}}; }

std::vector<std::byte> bytes(std::uint64_t count, int value = 7) {
    return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

// Appends no-ops until the tail is at `position`.
void fill_to(Chain& chain, std::uint64_t position) {
    while (chain.tail().position.value < position) chain.append(EntryKind::no_op, Stamp{}, {});
    ASSERT_EQ(chain.tail().position.value, position);
}

TEST(Geometry, is_the_designs) {
    const Geometry big = Geometry::of(std::uint64_t{64} << 20);
    EXPECT_EQ(big.reserve_bytes, std::uint64_t{4} << 20);
    EXPECT_EQ(big.kept_tail_bytes, std::uint64_t{16} << 20);
    EXPECT_EQ(big.max_entry_bytes, std::uint64_t{16} << 20);
    EXPECT_EQ(Geometry::of(std::uint64_t{1} << 20).reserve_bytes, 64u * 1024);
}

TEST(Geometry, of_every_size_leaves_room_for_a_largest_entry_and_its_pad) {
    for (std::uint64_t ring_bytes = Ring::kMinBytes; ring_bytes <= Ring::kMaxBytes; ring_bytes *= 2) {
        const Geometry g = Geometry::of(ring_bytes);
        EXPECT_EQ(g.reserve_bytes % kEntryAlignment, 0u);
        EXPECT_EQ(g.max_entry_bytes % kEntryAlignment, 0u);
        // A pad is smaller than the entry that it makes room for.
        EXPECT_LE(g.reserve_bytes + g.kept_tail_bytes + 2 * g.max_entry_bytes, ring_bytes);
    }
}

TEST(Ring, of_a_wrong_size_or_alignment_aborts) {
    alignas(64) static std::byte memory[4096];
    EXPECT_DEATH(Ring(std::span(memory, 512)), "memory.size\\(\\) >= kMinBytes, found 512");
    EXPECT_DEATH(Ring(std::span(memory, 1536)), "broken invariant");
    EXPECT_DEATH(Ring(std::span(memory + 8, 1024)), "kEntryAlignment");
}

TEST(Ring, zeroed_memory_holds_no_entry) {
    TestRing ring(1024, kGenesis);
    EXPECT_FALSE(next_entry(ring, start_of_log(), kNoLimit));
    EXPECT_FALSE(next_entry(ring, Point{}, kNoLimit));
}

TEST(Entry, that_was_appended_is_read_back_with_every_field) {
    TestRing ring(4096, kGenesis);
    Point tail = start_of_log();
    append(ring, tail, EntryKind::no_op, Stamp{Ballot{257}, Index{0}, 5}, {});
    const Point before = tail;
    const auto payload = bytes(100);
    const Position start = append(ring, tail, EntryKind::command, Stamp{Ballot{258}, Index{1}, 6}, payload);
    EXPECT_EQ(start, before.position);

    const auto entry = next_entry(ring, before, tail.position);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->header.index, 2u);
    EXPECT_EQ(entry->header.ballot, 258u);
    EXPECT_EQ(entry->header.commit, 1u);
    EXPECT_EQ(entry->header.timestamp_ns, 6u);
    EXPECT_EQ(entry->header.kind, EntryKind::command);
    EXPECT_TRUE(std::ranges::equal(entry->payload, payload));
    EXPECT_EQ(entry->start, before.position);
    EXPECT_EQ(entry->end, tail);
    EXPECT_EQ(tail, (Point{Index{2}, Position{64 + 192}, entry->header.checksum, Ballot{258}, 6}));
}

TEST(Entry, hashed_beforehand_is_the_same_entry) {
    TestRing one(1024, kGenesis);
    TestRing other(1024, kGenesis);
    Point tail = start_of_log();
    Point other_tail = tail;
    const auto payload = bytes(50);
    append(one, tail, EntryKind::command, Stamp{}, payload);
    append(other, other_tail, EntryKind::command, Stamp{}, payload);
    EXPECT_EQ(tail, other_tail);
    EXPECT_EQ(one.copy(), other.copy());
}

TEST(Entry, of_every_payload_length_has_the_specified_size_and_a_zero_gap) {
    for (std::uint64_t length = 0; length <= 1024 - sizeof(EntryHeader); ++length) {
        TestRing ring(4096, kGenesis);
        std::ranges::fill(ring.memory(), std::byte{0xff});
        Point tail = start_of_log();
        append(ring, tail, EntryKind::command, Stamp{}, bytes(length));
        ASSERT_EQ(tail.position.value, (48 + length + 63) / 64 * 64);
        ASSERT_TRUE(next_entry(ring, start_of_log(), tail.position)) << length;
        for (std::uint64_t at = 48 + length; at < tail.position.value; ++at)
            ASSERT_EQ(ring.memory()[at], std::byte{0}) << length;
        ASSERT_EQ(ring.memory()[tail.position.value], std::byte{0xff}) << "nothing behind the entry is touched";
        ASSERT_TRUE(NaiveReader(ring.memory(), kGenesis).next(start_of_log(), ~std::uint64_t{0})) << length;
    }
}

TEST(Entry, of_exactly_the_largest_size_is_taken) {
    for (const std::uint64_t ring_bytes : {1024u, 4096u, 1u << 20}) {
        TestRing ring(ring_bytes, kGenesis);
        Point tail = start_of_log();
        append(ring, tail, EntryKind::command, Stamp{}, bytes(ring_bytes / 4 - sizeof(EntryHeader)));
        EXPECT_EQ(tail.position.value, ring_bytes / 4);
        EXPECT_TRUE(next_entry(ring, start_of_log(), tail.position));
    }
}

TEST(Entry, larger_than_the_largest_size_aborts) {
    TestRing ring(4096, kGenesis);
    Point tail = start_of_log();
    EXPECT_DEATH(append(ring, tail, EntryKind::command, Stamp{}, bytes(1024 - 48 + 1)), "max_entry_bytes");
}

// A chain that is valid but for its size: the reader's own bound refuses it.
TEST(Entry, larger_than_the_largest_size_is_not_read) {
    TestRing ring(4096, kGenesis);
    EntryHeader header{.checksum = 0, .index = 1, .ballot = 0, .commit = 0, .timestamp_ns = 0, .length = 0,
                       .kind = EntryKind::command, .flags = 0, .reserved = 0};
    for (const std::uint32_t length : {1024u - 48u, 1024u - 48u + 1u, 4096u - 48u, 4096u, ~0u}) {
        header.length = length;
        const std::uint64_t in_ring = std::min<std::uint64_t>(length, 4096 - 48);
        const BytesView payload(ring.memory().data() + 48, in_ring);
        header.checksum = entry_checksum(header, payload_hash(payload, kGenesis), kGenesis);
        std::memcpy(ring.memory().data(), &header, sizeof header);
        EXPECT_EQ(next_entry(ring, start_of_log(), kNoLimit).has_value(), length == 1024 - 48) << length;
    }
}

// The bytes go on behind the ring, and are right: but they are not the ring's.
TEST(Entry, that_crosses_the_rings_end_is_not_read) {
    TestRing longer(2048, kGenesis);
    const Ring ring(longer.memory().first(1024), kGenesis);
    const Point before{Index{4}, Position{1024 - 128}, 1, Ballot{300}, 50};
    for (const std::uint64_t length : {128u - 48u, 128u - 48u + 1u, 256u - 48u}) {
        Point tail = before;
        append(longer, tail, EntryKind::command, Stamp{Ballot{300}, Index{4}, 50}, bytes(length));
        EXPECT_EQ(next_entry(ring, before, kNoLimit).has_value(), length == 128 - 48) << length;
    }
}

TEST(Append, of_what_a_reader_would_refuse_aborts) {
    TestRing ring(1024, kGenesis);
    Point tail{Index{3}, Position{64}, 1, Ballot{300}, 50};
    EXPECT_DEATH(append(ring, tail, EntryKind::no_op, Stamp{Ballot{299}, Index{0}, 50}, {}), "ballot");
    EXPECT_DEATH(append(ring, tail, EntryKind::no_op, Stamp{Ballot{300}, Index{0}, 49}, {}), "timestamp");
    EXPECT_DEATH(append(ring, tail, EntryKind::no_op, Stamp{Ballot{300}, Index{4}, 50}, {}), "commit");
    EXPECT_DEATH(append(ring, tail, EntryKind::pad, Stamp{Ballot{300}, Index{0}, 50}, {}), "pad");
    tail.position.value = 65;
    EXPECT_DEATH(append(ring, tail, EntryKind::no_op, Stamp{Ballot{300}, Index{0}, 50}, {}), "kEntryAlignment");
    EXPECT_DEATH(next_entry(ring, tail, kNoLimit), "kEntryAlignment");
    EXPECT_DEATH(step_over_verified(ring, tail), "kEntryAlignment");
}

TEST(Append, at_every_remainder_of_the_lap_pads_only_what_would_cross) {
    constexpr std::uint64_t kRing = 2048;
    for (std::uint64_t remainder = 64; remainder <= kRing / 2; remainder += 64) {
        for (std::uint64_t length = 0; length <= kRing / 4 - 48; length += 8) {
            TestRing ring(kRing, kGenesis);
            Chain chain(ring, kGenesis);
            fill_to(chain, kRing - remainder);
            const Point before = chain.tail();
            chain.forget();
            const std::uint64_t asked = bytes_to_append(ring, before.position, length);
            chain.append(EntryKind::command, Stamp{}, bytes(length));

            const std::uint64_t size = entry_bytes(length);
            const bool padded = size > remainder;
            ASSERT_EQ(chain.entries().size(), padded ? 2u : 1u);
            ASSERT_EQ(chain.tail().position - before.position, asked);
            ASSERT_EQ(asked, padded ? remainder + size : size);
            const auto found = read_all(ring, before);
            ASSERT_EQ(found.size(), chain.entries().size());
            ASSERT_EQ(found.back().end, chain.tail());
            if (!padded) continue;
            ASSERT_EQ(found.front().header.kind, EntryKind::pad);
            ASSERT_EQ(found.front().header.length, remainder - 48);
            ASSERT_TRUE(found.front().payload.empty());
            ASSERT_EQ(found.front().end.position.value, kRing);
        }
    }
}

TEST(Append, of_a_64_byte_entry_never_pads) {
    TestRing ring(1024, kGenesis);
    Chain chain(ring, kGenesis);
    for (int count = 0; count < 1000; ++count) chain.append(EntryKind::no_op, Stamp{}, bytes(16));
    EXPECT_EQ(chain.tail().position.value, 64'000u);
    EXPECT_EQ(chain.tail().index.value, 1000u);
}

TEST(Pad, is_valid_whatever_its_body_and_not_one_byte_longer_or_shorter) {
    TestRing ring(1024, kGenesis);
    Chain chain(ring, kGenesis);
    fill_to(chain, 1024 - 128);
    const Point before = chain.tail();
    chain.append(EntryKind::command, Stamp{}, bytes(200));
    for (std::uint64_t at = 1024 - 128 + 48; at < 1024; ++at) ring.memory()[at] = std::byte{0xaa};
    EXPECT_TRUE(next_entry(ring, before, kNoLimit));

    EntryHeader header;
    std::memcpy(&header, ring.memory().data() + 1024 - 128, sizeof header);
    for (const std::uint32_t length : {0u, 16u, 79u, 81u, 144u, ~0u - 47u, ~0u}) {
        header.length = length;
        header.checksum = entry_checksum(header, payload_hash({}, kGenesis), before.checksum);
        std::memcpy(ring.memory().data() + 1024 - 128, &header, sizeof header);
        EXPECT_FALSE(next_entry(ring, before, kNoLimit)) << length;
    }
}

TEST(Limit, short_of_the_entrys_end_hides_it) {
    TestRing ring(2048, kGenesis);
    Chain chain(ring, kGenesis);
    chain.append(EntryKind::no_op, Stamp{}, {});
    const Point before = chain.tail();
    chain.append(EntryKind::command, Stamp{}, bytes(100));
    for (std::uint64_t limit = 0; limit <= 1024; ++limit)
        EXPECT_EQ(next_entry(ring, before, Position{limit}).has_value(), limit >= chain.tail().position.value) << limit;
}

TEST(Limit, behind_a_pads_header_is_enough_for_the_pad) {
    TestRing ring(1024, kGenesis);
    Chain chain(ring, kGenesis);
    fill_to(chain, 1024 - 128);
    const Point before = chain.tail();
    chain.append(EntryKind::command, Stamp{}, bytes(200));
    for (std::uint64_t limit = 1024 - 128; limit <= 1024; ++limit)
        EXPECT_EQ(next_entry(ring, before, Position{limit}).has_value(), limit >= 1024 - 128 + 48) << limit;
}

TEST(Reader, sees_every_flipped_bit_of_an_entry) {
    for (const std::uint64_t length : {0u, 1u, 15u, 16u, 17u, 64u, 100u, 129u, 300u}) {
        TestRing ring(2048, kGenesis);
        Point tail = start_of_log();
        append(ring, tail, EntryKind::command, Stamp{Ballot{257}, Index{0}, 9}, bytes(length));
        for (std::uint64_t bit = 0; bit < tail.position.value * 8; ++bit) {
            const std::byte mask = std::byte{1} << static_cast<int>(bit % 8);
            ring.memory()[bit / 8] ^= mask;
            ASSERT_FALSE(next_entry(ring, start_of_log(), kNoLimit)) << "length " << length << " bit " << bit;
            ring.memory()[bit / 8] ^= mask;
        }
        ASSERT_TRUE(next_entry(ring, start_of_log(), kNoLimit));
    }
}

// Everything right, the checksum too, but for one field that cannot follow.
TEST(Reader, refuses_a_chained_header_with_any_implausible_field) {
    const Point after{Index{4}, Position{0}, kGenesis, Ballot{300}, 50};
    const EntryHeader good{.checksum = 0, .index = 5, .ballot = 300, .commit = 4, .timestamp_ns = 50, .length = 0,
                           .kind = EntryKind::no_op, .flags = 0, .reserved = 0};
    const auto taken = [&](EntryHeader header) {
        TestRing ring(1024, kGenesis);
        header.checksum = entry_checksum(header, payload_hash({}, kGenesis), after.checksum);
        std::memcpy(ring.memory().data(), &header, sizeof header);
        return next_entry(ring, after, kNoLimit).has_value();
    };
    const auto with = [&](auto&& change) {
        EntryHeader header = good;
        change(header);
        return header;
    };
    EXPECT_TRUE(taken(good));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.index = 4; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.index = 6; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.ballot = 299; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.timestamp_ns = 49; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.commit = 5; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.kind = EntryKind{0}; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.kind = EntryKind{6}; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.flags = 1; })));
    EXPECT_FALSE(taken(with([](EntryHeader& h) { h.reserved = 1; })));
}

TEST(StepOver, of_what_is_not_the_next_entry_aborts) {
    TestRing ring(1024, kGenesis);
    EXPECT_DEATH(step_over_verified(ring, start_of_log()), "header.index == at.index.value \\+ 1, found 0 and 1");
}

// Without a secret in the payload's hash, a client can choose payloads that XXH3 hashes alike: a word that equals the
// public secret makes its neighbour count for nothing. Filled with such payloads, a torn entry would verify over what
// an older lap left there. The key keeps it out.
TEST(Reader, refuses_a_torn_payload_that_is_forged_to_the_public_hash) {
    // XXH3's secret, as it meets the payload's words at 16 and 32 to 48 from the end of a 64-byte payload.
    const std::uint64_t secret[] = {0x78e5c0cc4ee679cb, 0x8e2443f7744608b8};
    const auto forged = [&](int filling) {
        auto payload = bytes(64, filling);
        std::ranges::fill(std::span(payload).first(16), std::byte{1});
        std::ranges::fill(std::span(payload).last(16), std::byte{1});
        std::memcpy(payload.data() + 16, &secret[0], 8);
        std::memcpy(payload.data() + 32, &secret[1], 8);
        return payload;
    };
    ASSERT_EQ(payload_hash(forged(2), 0), payload_hash(forged(3), 0)) << "the forgery is good, without a key";
    EXPECT_NE(payload_hash(forged(2), kGenesis), payload_hash(forged(3), kGenesis));

    for (const bool keyed : {false, true}) {
        TestRing ring(1024, keyed ? kGenesis : 0);
        Chain chain(ring, kGenesis);
        for (int count = 0; count < 8; ++count) chain.append(EntryKind::command, Stamp{}, forged(2));
        const Point before = chain.tail();
        ASSERT_EQ(before.position.value, ring.ring().bytes());
        const auto old_lap = ring.copy();
        chain.append(EntryKind::command, Stamp{}, forged(3));
        // The entry's first line has landed, its second has not.
        std::ranges::copy(std::span(old_lap).subspan(64, 64), ring.memory().subspan(64).begin());
        EXPECT_EQ(next_entry(ring, before, kNoLimit).has_value(), !keyed);
    }
}

}  // namespace
}  // namespace lockstep::log
