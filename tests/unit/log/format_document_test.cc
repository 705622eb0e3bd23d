// The worked example of docs/log-format.md, made again: the document must hold exactly these lines.
#include "tests/unit/log/naive_reader.h"
#include "tests/unit/log/test_ring.h"
#include "tests/unit/hex_lines.h"

#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::log {
namespace {

constexpr std::uint64_t kGenesis = 0x0123456789abcdef;

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}

unsigned long long number(std::uint64_t value) { return value; }

const char* name(EntryKind kind) {
    switch (kind) {
        case EntryKind::command: return "command";
        case EntryKind::no_op: return "no-op";
        case EntryKind::config: return "config";
        case EntryKind::pad: return "pad";
        case EntryKind::session: return "session";
    }
    return "?";
}

std::string describe(std::span<const std::byte> ring, const VerifiedEntry& entry, const Point& before) {
    const EntryHeader& h = entry.header;
    std::string out = text("position %llu, ring offset %llu: %s\n", number(entry.start.value),
                           number(entry.start.value % ring.size()), name(h.kind));
    out += text("  seed %016llx  hash of payload %016llx\n", number(before.checksum),
                number(payload_hash(entry.payload, kGenesis)));
    out += text("  checksum %016llx  index %llu  ballot %llu (%s)  commit %llu\n", number(h.checksum), number(h.index),
                number(h.ballot), to_string(Ballot{h.ballot}).c_str(), number(h.commit));
    out += text("  timestamp %llu  length %u  next position %llu\n", number(h.timestamp_ns), h.length,
                number(entry.end.position.value));
    const std::uint64_t shown = h.kind == EntryKind::pad ? sizeof(EntryHeader) : entry.end.position - entry.start;
    return out + hex_lines(ring, entry.start.value % ring.size(), shown);
}

std::string example() {
    TestRing ring(1024, kGenesis);
    const Point before{Index{8}, Position{1024 + 832}, 0x1122334455667788, Ballot::of(1, ReplicaId{2}), 1'000'000'000};
    Point tail = before;
    const auto command = [&](std::string_view payload, std::uint64_t timestamp_ns, std::uint64_t commit) {
        append(ring, tail, EntryKind::command, Stamp{Ballot::of(3, ReplicaId{1}), Index{commit}, timestamp_ns},
               std::as_bytes(std::span(payload)));
    };
    command("incr x", 2'000'000'000, 8);
    command("set greeting an entry that would cross the end of the ring, so that a pad goes first", 2'000'000'500, 9);
    std::string out = text("ring of %llu bytes, genesis %016llx\n", number(ring.memory().size()), number(kGenesis));
    Point at = before;
    for (const VerifiedEntry& entry : read_all(ring, before)) {
        out += "\n" + describe(ring.memory(), entry, at);
        at = entry.end;
    }
    EXPECT_EQ(at, tail);
    EXPECT_EQ(at.index.value, before.index.value + 3) << "two entries and a pad";
    return out;
}

TEST(FormatDocument, shows_the_bytes_that_the_code_writes) {
    std::ifstream file(LOCKSTEP_SOURCE_FOLDER "/docs/log-format.md");
    const std::string document{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::string block = "```text\n" + example() + "```\n";
    EXPECT_NE(document.find(block), std::string::npos) << "docs/log-format.md lacks this block:\n" << block;
}

}  // namespace
}  // namespace lockstep::log
