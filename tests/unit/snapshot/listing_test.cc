// The snapshots in a real folder, as the library's call and the command `lockstep snapshot` show them.
#include "log/disk/posix_disk.h"
#include "log/snapshot/writer.h"

#include <lockstep/snapshots.h>

#include <gmock/gmock.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using log::kSnapshotChunkBytes;
using testing::HasSubstr;

struct SnapshotFolder : testing::Test {
    SnapshotFolder() : path((std::filesystem::temp_directory_path() / "lockstep_snapshots_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        std::filesystem::create_directory(path + "/snapshots");
    }
    ~SnapshotFolder() override { std::filesystem::remove_all(path); }

    // A complete one in the data folder; its file.
    std::string make(std::uint64_t index, std::size_t state_bytes) {
        auto disk = log::PosixDisk::open(path + "/snapshots");
        EXPECT_TRUE(disk) << disk.error().message();
        log::SnapshotWriter writer(*disk.value(), 0);
        const log::SnapshotMeta meta{.cluster_id = 5,
                                     .genesis = 99,
                                     .ring_bytes = 1024,
                                     .at = {Index{index}, Position{index * 64}, 7, Ballot::of(4, ReplicaId{1}), 1000},
                                     .config = "voters"};
        EXPECT_TRUE(writer.begin(log::kTakenName, meta));
        EXPECT_TRUE(writer.write(std::vector<std::byte>(state_bytes, std::byte{'x'})));
        const auto name = writer.finish();
        EXPECT_TRUE(name);
        const log::FileName file = snapshot_file_name(name.value());
        EXPECT_TRUE(disk.value()->perform(log::DiskOperation::rename(log::kTakenName, file)));
        return path + "/snapshots/" + file.c_str();
    }

    static void flip(const std::string& name, std::uint64_t offset) {
        std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(offset));
        const char byte = static_cast<char>(file.get());
        file.seekp(static_cast<std::streamoff>(offset));
        file.put(static_cast<char>(byte ^ 4));
        ASSERT_TRUE(file.good());
    }

    // Runs `lockstep ...`: its output, and how it ended.
    static int run(const std::string& arguments, std::string& output) {
        output.clear();
        FILE* const pipe = ::popen((std::string(LOCKSTEP_CLI) + " " + arguments + " 2>&1").c_str(), "r");
        if (pipe == nullptr) return -1;
        char piece[4096];
        while (const std::size_t got = std::fread(piece, 1, sizeof piece, pipe)) output.append(piece, got);
        const int status = ::pclose(pipe);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    std::string path;
    std::string output;
};

TEST_F(SnapshotFolder, is_listed_and_verified) {
    make(12, 100);
    make(300, kSnapshotChunkBytes + 1);
    std::ofstream(path + "/snapshots/snap-taken.new") << "half of one";
    for (const bool verify : {false, true}) {
        const auto files = read_snapshots(path, {.verify = verify});
        ASSERT_TRUE(files) << files.error().message();
        ASSERT_EQ(files.value().size(), 2u);
        EXPECT_EQ(files.value()[0].index, Index{12});
        EXPECT_EQ(files.value()[0].cluster_id, 5u);
        EXPECT_EQ(files.value()[1].state_bytes, kSnapshotChunkBytes + 1);
        EXPECT_EQ(files.value()[1].bytes, log::snapshot_bytes(kSnapshotChunkBytes + 1));
        EXPECT_EQ(files.value()[1].damage, "");
    }
    EXPECT_EQ(run("snapshot list " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("index 300, ballot 4.1, position 19200, 65537 bytes of state"));
    EXPECT_EQ(run("snapshot verify " + path + "/snapshots", output), 0);
    EXPECT_THAT(output, HasSubstr("whole: index 12"));
    EXPECT_EQ(run("snapshot verify --json " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("{\"verified\": true, \"snapshots\": [{\"name\": \"snap-000000000000000c-"));
}

TEST_F(SnapshotFolder, rot_is_named) {
    const std::string file = make(12, 3 * kSnapshotChunkBytes);
    flip(file, log::chunk_offset(2) + 100);
    EXPECT_EQ(run("snapshot list " + path, output), 0) << "a list does not read the state";
    EXPECT_EQ(run("snapshot verify " + path, output), 1);
    EXPECT_THAT(output, HasSubstr("damaged: chunk 2, at byte " + std::to_string(log::chunk_offset(2))));
    flip(file, 20);
    EXPECT_EQ(run("snapshot list " + path, output), 1);
    EXPECT_THAT(output, HasSubstr("damaged: its head"));
}

TEST_F(SnapshotFolder, what_is_not_there_is_said) {
    EXPECT_EQ(run("snapshot list " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("no snapshot in " + path));
    EXPECT_EQ(run("snapshot verify " + path + "/none", output), 2);
    EXPECT_THAT(output, HasSubstr("No such file or directory"));
}

TEST_F(SnapshotFolder, words_that_are_no_command_are_named_with_those_that_are) {
    EXPECT_EQ(run("snapshto list " + path, output), 2);
    EXPECT_THAT(output, HasSubstr("lockstep has no command \"snapshto\"; it has doctor, log, snapshot"));
    EXPECT_EQ(run("snapshot show " + path, output), 2);
    EXPECT_THAT(output, HasSubstr("lockstep snapshot has no command \"show\"; it has list, verify"));
    EXPECT_EQ(run("log", output), 2);
    EXPECT_THAT(output, HasSubstr("lockstep log needs one of its commands: list, verify, entries, export, adopt"));
    EXPECT_EQ(run("", output), 2);
    EXPECT_THAT(output, HasSubstr("lockstep needs one of its commands: doctor, log, snapshot"));
    EXPECT_EQ(run("--help", output), 0);
    EXPECT_EQ(run("snapshot --help", output), 0);
}

}  // namespace
}  // namespace lockstep
