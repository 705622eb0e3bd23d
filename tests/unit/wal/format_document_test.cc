// The worked example of docs/wal-format.md, made again: the document must hold exactly these lines.
#include "tests/unit/hex_lines.h"
#include "tests/unit/wal/wal_world.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::log {
namespace {

TEST(WalFormatDocument, shows_what_the_code_writes) {
    WalWorld world(1, 1024);
    world.work_all();
    log::append(world.ring, world.tail, EntryKind::command, Stamp{Ballot{258}, Index{0}, 2'000'000'000},
                std::as_bytes(std::span("incr x", 6)));
    world.wal->promise(Ballot{258}, Incarnation{0x1234});
    world.hand_over();
    world.work_all();
    const auto hard = world.disk.contents(kHardStateName);
    const FileName name = segment_name(1, Position{0});
    const auto segment = world.disk.contents(name);
    ASSERT_FALSE(segment.empty());
    std::string example;
    for (const std::uint64_t slot : {0u, 1u})
        example += "hard_state, slot " + std::to_string(slot) + "\n" + hex_lines(hard, slot * kBlockBytes, 192);
    example += "\n" + std::string(name.view()) + ", header\n" + hex_lines(segment, 0, 96);
    example += "floor of generation 1\n" + hex_lines(segment, floor_offset(1), 112);
    example += "the entry\n" + hex_lines(segment, kSegmentDataOffset, 64);

    std::ifstream file(LOCKSTEP_SOURCE_FOLDER "/docs/wal-format.md");
    const std::string document((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_THAT(document, testing::HasSubstr("```text\n" + example + "```\n")) << "what the code writes:\n" << example;
}

}  // namespace
}  // namespace lockstep::log
