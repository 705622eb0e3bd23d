// The bytes of a snapshot's file, and its names.
#include "log/disk/sim_disk.h"
#include "log/snapshot/writer.h"
#include "tests/unit/hex_lines.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <xxhash.h>

namespace lockstep::log {
namespace {

TEST(SnapshotFormat, sizes_of_files_and_states_are_each_others_inverse) {
    for (const std::uint64_t state :
         {std::uint64_t{0}, std::uint64_t{1}, kSnapshotChunkBytes - 1, kSnapshotChunkBytes, kSnapshotChunkBytes + 1,
          10 * kSnapshotChunkBytes, std::uint64_t{1} << 40})
        EXPECT_EQ(state_bytes_of(snapshot_bytes(state)), state);
}

TEST(SnapshotFormat, sizes_that_no_file_has_are_refused) {
    EXPECT_FALSE(state_bytes_of(0));
    EXPECT_FALSE(state_bytes_of(snapshot_bytes(0) - 1));
    EXPECT_FALSE(state_bytes_of(snapshot_bytes(0) + sizeof(ChunkBlock)));
    EXPECT_FALSE(state_bytes_of(snapshot_bytes(kSnapshotChunkBytes) + sizeof(ChunkBlock)));
    EXPECT_FALSE(state_bytes_of(~std::uint64_t{0}));
}

TEST(SnapshotFormat, head_of_another_version_is_no_rot) {
    const SnapshotMeta meta{.cluster_id = 1, .genesis = 2, .ring_bytes = 4, .at = {}, .config = "x"};
    SnapshotHeadBlock block = block_of(meta);
    EXPECT_EQ(snapshot_meta_of(block).value(), meta);
    block.magic += std::uint64_t{1} << 56;
    EXPECT_FALSE(of_another_version(block)) << "its checksum is wrong: rot";
    block.checksum = XXH3_64bits_withSeed(&block, offsetof(SnapshotHeadBlock, checksum), meta.genesis);
    EXPECT_TRUE(of_another_version(block));
    EXPECT_THAT(snapshot_meta_of(block).error().message(), testing::HasSubstr("its format is version 2"));
}

TEST(SnapshotFormat, only_names_as_they_are_written_name_a_snapshot) {
    const SnapshotName name{.at = {Index{1234}, {}, 0, {}, 0}, .bytes = 1, .digest = 0x0123'4567'89ab'cdef};
    EXPECT_EQ(snapshot_file_name(name).view(), "snap-00000000000004d2-0123456789abcdef");
    EXPECT_TRUE(names_snapshot(snapshot_file_name(name)));
    for (const char* other : {"snap-taken.new", "snap-4d2-123", "snap-00000000000004D2-0123456789abcdef", "hard_state",
                              "snap-00000000000004d2-0123456789abcdef.new", "wal-00000001-0000000000000000"})
        EXPECT_FALSE(names_snapshot(FileName(other))) << other;
}

TEST(SnapshotFormatDocument, shows_what_the_code_writes) {
    SimDisk disk([](std::uint64_t) { return std::uint64_t{0}; });
    SnapshotWriter writer(disk, 0);
    const SnapshotMeta meta{.cluster_id = 77,
                            .genesis = 0x5eed'0f'a'109'1234,
                            .ring_bytes = 1024,
                            .at = {Index{1}, Position{64}, 0x1234'5678'9abc'def0, Ballot{258}, 2'000'000'000},
                            .config = "who votes"};
    ASSERT_TRUE(writer.begin(kTakenName, meta));
    ASSERT_TRUE(writer.write(std::as_bytes(std::span("hello", 5))));
    const auto name = writer.finish();
    ASSERT_TRUE(name);
    const auto file = disk.contents(kTakenName);
    const std::string example = std::string(snapshot_file_name(name.value()).view()) + "\nhead\n" +
                                hex_lines(file, 0, 96) + hex_lines(file, 592, 8) + "chunk 0\n" +
                                hex_lines(file, chunk_offset(0), sizeof(ChunkBlock) + 5) + "end\n" +
                                hex_lines(file, chunk_offset(0) + sizeof(ChunkBlock) + 5, sizeof(SnapshotEndBlock));

    std::ifstream document(LOCKSTEP_SOURCE_FOLDER "/docs/snapshot-format.md");
    const std::string text((std::istreambuf_iterator<char>(document)), std::istreambuf_iterator<char>());
    EXPECT_THAT(text, testing::HasSubstr("```text\n" + example + "```\n")) << "what the code writes:\n" << example;
}

}  // namespace
}  // namespace lockstep::log
