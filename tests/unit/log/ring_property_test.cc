// What must never be an entry: torn, stale, spliced, forged or flipped bytes are "not there yet", in any combination
// that a few hundred random cases per run come up with. A failing case prints the numbers that repeat it.
#include "tests/unit/log/naive_reader.h"
#include "tests/unit/log/test_ring.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>  // needs the two before

namespace lockstep::log {
namespace {

constexpr std::uint64_t kGenesis = 0x0dd'b1a5'ed5e'edff;

// A random case: a ring with some laps behind it, and its source of more.
struct Case {
    std::mt19937_64 random;
    std::uint64_t ring_bytes;
    TestRing ring;
    Chain chain;

    explicit Case(std::uint64_t seed)
        : random(seed), ring_bytes(Ring::kMinBytes << random() % 4), ring(ring_bytes, kGenesis), chain(ring, kGenesis) {
        const std::uint64_t behind = random() % 4 * ring_bytes + random() % ring_bytes;
        while (chain.tail().position.value < behind) append();
        chain.forget();
    }

    std::uint64_t payload_bytes() {
        const std::uint64_t most = ring_bytes / 4 - sizeof(EntryHeader);
        return random() % 2 == 0 ? random() % (most + 1) : random() % std::min<std::uint64_t>(most + 1, 100);
    }
    void append() { chain.append(payload_bytes(), random); }
    // At least one entry, and no more bytes than a lap has.
    void append_batch() {
        const Position from = chain.tail().position;
        do append();
        while (random() % 8 != 0 && chain.tail().position - from < ring_bytes / 2);
    }
};

std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }

// How many of the entries, from the first, have all their bytes in `memory` as they are in `whole`.
std::size_t leading_whole(const std::vector<Appended>& entries, std::span<const std::byte> memory,
                          std::span<const std::byte> whole) {
    const auto same = [&](const Appended& entry) {
        const std::uint64_t at = entry.before.position.value % memory.size();
        return std::ranges::equal(memory.subspan(at, entry.covered_bytes()), whole.subspan(at, entry.covered_bytes()));
    };
    return static_cast<std::size_t>(std::ranges::find_if_not(entries, same) - entries.begin());
}

void expect_read(const Ring& ring, const Point& from, const std::vector<Appended>& entries, std::size_t count) {
    const auto found = read_all(ring, from);
    RC_ASSERT(found.size() == count);
    for (std::size_t at = 0; at < count; ++at) {
        RC_ASSERT(found[at].end == entries[at].end);
        RC_ASSERT((found[at].header.kind == EntryKind::pad) == entries[at].pad);
    }
}

RC_GTEST_PROP(Reader, of_any_landed_pieces_takes_exactly_the_leading_whole_entries, ()) {
    Case c(any_seed());
    const auto old_laps = c.ring.copy();
    const Point from = c.chain.tail();
    c.append_batch();
    const auto whole = c.ring.copy();

    const std::uint64_t offset = from.position.value % c.ring_bytes;
    for (int count = 0; count < 100; ++count) {
        const std::uint64_t piece = c.random() % 2 == 0 ? 8 : 64;
        const std::uint64_t lost_of_64 = c.random() % 65;
        auto torn = old_laps;
        // What lies before the cut has landed, of the rest any pieces.
        const std::uint64_t cut = c.random() % (c.ring_bytes / piece + 1);
        for (std::uint64_t at = 0; at < c.ring_bytes / piece; ++at) {
            if (at >= cut && c.random() % 64 < lost_of_64) continue;
            const std::uint64_t to = (offset + at * piece) % c.ring_bytes;
            std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(to), piece,
                        torn.begin() + static_cast<std::ptrdiff_t>(to));
        }
        c.ring.restore(torn);
        expect_read(c.ring, from, c.chain.entries(), leading_whole(c.chain.entries(), torn, whole));
    }
}

RC_GTEST_PROP(Reader, at_the_tail_finds_nothing_of_older_laps, ()) {
    Case c(any_seed());
    for (int count = 0; count < 100; ++count) {
        RC_ASSERT(!next_entry(c.ring, c.chain.tail(), kNoLimit));
        c.append();
    }
    // A point of an older lap finds nothing of the newer one: at most its own entry, where a pad's body covers it.
    for (const Appended& entry : c.chain.entries()) {
        if (entry.before.position + c.ring_bytes > c.chain.tail().position) continue;
        const auto found = next_entry(c.ring, entry.before, kNoLimit);
        if (found) RC_ASSERT(found->end == entry.end);  // RC_ASSERT evaluates both sides of an "or"
    }
}

// Two leaders go on from the same point. What is read is one's log or the other's, or a prefix; never a mixture.
RC_GTEST_PROP(Reader, of_any_splice_of_two_logs_stays_in_one, ()) {
    Case c(any_seed());
    TestRing other_ring(c.ring_bytes, kGenesis);
    other_ring.restore(c.ring.copy());
    const Point from = c.chain.tail();
    Chain other(other_ring, from);
    // Often the same shape: then all headers stand at the same places.
    const bool same_shape = c.random() % 4 != 0;
    while (c.chain.tail().position - from.position < c.ring_bytes / 2) {
        const std::uint64_t length = c.payload_bytes();
        c.chain.append(length, c.random);
        if (other.tail().position - from.position < c.ring_bytes / 2)
            other.append(same_shape ? length : c.payload_bytes(), c.random);
    }
    const auto mine = c.ring.copy();
    const auto theirs = other_ring.copy();
    for (int count = 0; count < 100; ++count) {
        auto spliced = mine;
        const std::uint64_t piece = c.random() % 2 == 0 ? 8 : 64;
        const std::uint64_t theirs_of_64 = c.random() % 65;
        for (std::uint64_t at = 0; at < c.ring_bytes; at += piece)
            if (c.random() % 64 < theirs_of_64)
                std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(at), piece,
                            spliced.begin() + static_cast<std::ptrdiff_t>(at));
        c.ring.restore(spliced);
        const std::size_t of_mine = leading_whole(c.chain.entries(), spliced, mine);
        const std::size_t of_theirs = leading_whole(other.entries(), spliced, theirs);
        if (of_mine >= of_theirs)
            expect_read(c.ring, from, c.chain.entries(), of_mine);
        else
            expect_read(c.ring, from, other.entries(), of_theirs);
    }
    // From a point of one log, the other's ring shows nothing.
    c.ring.restore(theirs);
    for (const Appended& entry : c.chain.entries())
        if (entry.before.checksum != from.checksum) RC_ASSERT(!next_entry(c.ring, entry.before, kNoLimit));
}

// A client sends a payload that holds the image of an entry: right in index, ballot, time, place and payload hash, and
// chained to a checksum that the forger knows, but not to the one that counts. A lap later the tail stands before it.
RC_GTEST_PROP(Reader, does_not_take_an_entry_that_was_forged_in_a_payload, ()) {
    std::mt19937_64 random(any_seed());
    constexpr std::uint64_t kRing = 4096;
    const std::uint64_t other_seed = random();
    const std::uint64_t payload_bytes = 16 + 64 * (2 + random() % 10);
    const std::uint64_t line = 1 + random() % 2;
    const std::uint64_t forged_length = random() % (64 * 2 - 48);

    // Lap after lap of the same lengths: the forger knows where its payload will lie, and what will stand before it.
    const auto run = [&](TestRing& ring, BytesView payload) {
        Chain chain(ring, kGenesis);
        while (chain.tail().position.value < 1024) chain.append(EntryKind::no_op, Stamp{}, {});
        chain.append(EntryKind::command, Stamp{}, payload);
        while (chain.tail().position.value < kRing + 1024 + 64 * line) chain.append(EntryKind::no_op, Stamp{}, {});
        return chain.tail();
    };
    TestRing rehearsal(kRing, kGenesis);
    Point expected = run(rehearsal, random_bytes(random, payload_bytes));
    RC_ASSERT(expected.position.value == kRing + 1024 + 64 * line);
    expected.checksum = other_seed;
    const Point forged_after = expected;
    TestRing forge(kRing, kGenesis);
    Chain forger(forge, forged_after);
    forger.append(EntryKind::command, Stamp{}, random_bytes(random, forged_length));
    auto payload = random_bytes(random, payload_bytes);
    const auto image = forge.memory().subspan(1024 + 64 * line, forger.tail().position - forged_after.position);
    RC_PRE(64 * line - 48 + image.size() <= payload.size());
    std::ranges::copy(image, payload.begin() + static_cast<std::ptrdiff_t>(64 * line - 48));

    TestRing ring(kRing, kGenesis);
    const Point tail = run(ring, payload);
    RC_ASSERT(next_entry(ring, forged_after, kNoLimit).has_value());  // perfect but for its seed
    RC_ASSERT(!next_entry(ring, tail, kNoLimit).has_value());
}

RC_GTEST_PROP(Reader, stops_at_the_entry_that_a_flipped_bit_is_in, ()) {
    Case c(any_seed());
    const Point from = c.chain.tail();
    c.append_batch();
    const auto whole = c.ring.copy();
    for (int count = 0; count < 50; ++count) {
        auto flipped = whole;
        const std::size_t which = c.random() % c.chain.entries().size();
        const Appended& entry = c.chain.entries()[which];
        const std::uint64_t bit = c.random() % (entry.covered_bytes() * 8);
        const std::uint64_t at = entry.before.position.value % c.ring_bytes + bit / 8;
        flipped[at] ^= std::byte{1} << static_cast<int>(bit % 8);
        c.ring.restore(flipped);
        expect_read(c.ring, from, c.chain.entries(), which);
    }
}

RC_GTEST_PROP(Reader, appender_and_stepper_agree_over_many_laps, ()) {
    Case c(any_seed());
    for (int count = 0; count < 300; ++count) {
        const Point before = c.chain.tail();
        const std::uint64_t length = c.payload_bytes();
        const std::uint64_t asked = bytes_to_append(c.ring, before.position, length);
        c.chain.append(length, c.random);
        RC_ASSERT(c.chain.tail().position - before.position == asked);
        Point read = before;
        Point stepped = before;
        while (read != c.chain.tail()) {
            const auto entry = next_entry(c.ring, read, c.chain.tail().position);
            RC_ASSERT(entry.has_value());
            RC_ASSERT(is_pad(c.ring, read.position) == (entry->header.kind == EntryKind::pad));
            stepped = step_over_verified(c.ring, stepped);
            read = entry->end;
            RC_ASSERT(stepped == read);
        }
    }
}

// Any bytes, any point, any limit: the reader says what the naive one says, whatever lies past the limit.
RC_GTEST_PROP(Reader, agrees_with_the_naive_one, ()) {
    Case c(any_seed());
    Point from = c.chain.tail();
    c.append_batch();
    for (int count = 0; count < 50; ++count) {
        const Appended& entry = c.chain.entries()[c.random() % c.chain.entries().size()];
        from = entry.before;
        auto memory = c.ring.copy();
        if (c.random() % 2 == 0) memory[c.random() % memory.size()] ^= std::byte{1};
        const Position limit = from.position + c.random() % (2 * (entry.end.position - from.position));
        const auto naive = NaiveReader(memory, kGenesis).next(from, limit.value);
        c.ring.restore(memory);
        const auto found = next_entry(c.ring, from, limit);
        RC_ASSERT(found.has_value() == naive.has_value());
        if (found) RC_ASSERT(found->end.position.value == naive->end);
    }
}

}  // namespace
}  // namespace lockstep::log
