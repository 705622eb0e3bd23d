// The log in a real folder, as the library's calls and the command `lockstep log` show it.
#include "log/disk/posix_disk.h"
#include "log/wal/wal.h"
#include "tests/unit/log/test_ring.h"

#include <lockstep/log_files.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct LogFolder : testing::Test {
    LogFolder() : path((std::filesystem::temp_directory_path() / "lockstep_log_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
    }
    ~LogFolder() override { std::filesystem::remove_all(path); }

    // A log of that many bytes at least, of commands of the same size.
    void make(std::uint64_t bytes, std::uint64_t ring_bytes, std::uint64_t command_bytes) {
        auto disk = log::PosixDisk::open(path);
        ASSERT_TRUE(disk) << disk.error().message();
        log::HardState hard{.cluster_id = 5, .replica = ReplicaId{3}, .genesis = 99, .ring_bytes = ring_bytes,
                            .incarnation = {}, .promised = Ballot::of(4, ReplicaId{1}), .promised_to = {}, .era = 1,
                            .base = {}, .floor = {}, .owed = {}};
        hard.base.checksum = hard.genesis;
        ASSERT_TRUE(log::create_log(*disk.value(), hard));
        log::TestRing ring(ring_bytes);
        log::TestRing copy(ring_bytes, hard.genesis);
        log::Ring into = ring.ring();
        auto recovered = log::recover(*disk.value(), {5, ReplicaId{3}, ring_bytes}, into);
        ASSERT_TRUE(recovered) << recovered.error().message();
        log::Wal wal(*recovered.value(), copy.ring());
        const std::vector<std::byte> command(command_bytes, std::byte{'x'});
        while (tail.position.value < bytes) {
            const Position until = tail.position + ring_bytes / 8;
            if (tail.index.value == 0) tail.checksum = hard.genesis;
            while (tail.position < until && tail.position.value < bytes)
                log::append(into, tail, log::EntryKind::command, stamp(), command);
            ASSERT_EQ(wal.append(into, tail.position), log::Taken::all);
            while (const log::DiskJob* const job = wal.next())
                wal.finish(log::perform_all(*disk.value(), job->operations()));
            ASSERT_FALSE(wal.stopped()) << wal.stopped()->message();
        }
    }

    void flip(const std::string& name, std::uint64_t offset) {
        std::fstream file(path + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(offset));
        const char byte = static_cast<char>(file.get());
        file.seekp(static_cast<std::streamoff>(offset));
        file.put(static_cast<char>(byte ^ 4));
        ASSERT_TRUE(file.good());
    }

    // Runs `lockstep log ...`: its output, and how it ended.
    int run(const std::string& arguments, std::string& output) {
        output.clear();
        FILE* const pipe = ::popen((std::string(LOCKSTEP_CLI) + " log " + arguments + " 2>&1").c_str(), "r");
        if (pipe == nullptr) return -1;
        char piece[4096];
        while (const std::size_t got = std::fread(piece, 1, sizeof piece, pipe)) output.append(piece, got);
        const int status = ::pclose(pipe);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    log::Stamp stamp() const { return {Ballot::of(4, ReplicaId{1}), tail.index, 1'000}; }

    std::string path;
    log::Point tail;
};

TEST_F(LogFolder, is_summed_up) {
    make(2500, 1024, 20);
    std::uint64_t entries = 0;
    ReadLogCalls calls;
    calls.entry = [&](const LogEntry& entry) {
        EXPECT_EQ(entry.index.value, ++entries);
        EXPECT_TRUE(std::string(entry.kind) == "pad" || entry.payload.size() == 20);
    };
    const auto read = read_log(path, calls);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read.value().cluster_id, 5u);
    EXPECT_EQ(read.value().replica, ReplicaId{3});
    EXPECT_EQ(read.value().last_index, tail.index);
    EXPECT_EQ(read.value().end_position, tail.position);
    EXPECT_EQ(read.value().floor_position, tail.position);
    EXPECT_EQ(read.value().entries, entries);
    ASSERT_EQ(read.value().segments.size(), 3u);
    EXPECT_EQ(read.value().segments[1].first_index.value, read.value().segments[0].last_index.value + 1);
    EXPECT_EQ(read.value().damage, "none");
    const auto none = read_log(path + "/none");
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message(), HasSubstr("No such file or directory"));
}

TEST_F(LogFolder, is_shown_by_the_command) {
    make(2500, 1024, 20);
    std::string output;
    EXPECT_EQ(run("list " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("replica r3 of cluster 5"));
    EXPECT_THAT(output, HasSubstr("wal-00000001-0000000000000400  "));
    EXPECT_EQ(run("list --json " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("\"end_position\": " + std::to_string(tail.position.value)));
    EXPECT_EQ(run("verify " + path, output), 0);
    EXPECT_THAT(output, HasSubstr("whole: " + std::to_string(tail.index.value) + " entries verified"));
    EXPECT_EQ(run("entries --from 3 --through 4 " + path, output), 0);
    EXPECT_THAT(output, HasSubstr(" 3  ballot 4.1"));
    EXPECT_EQ(std::ranges::count(output, '\n'), 2);
    EXPECT_EQ(run("export --from 1 --through 1 --to " + path + "/out " + path, output), 0);
    std::ifstream exported(path + "/out");
    const std::string text((std::istreambuf_iterator<char>(exported)), std::istreambuf_iterator<char>());
    EXPECT_THAT(text, HasSubstr("\"payload\": \"7878787878787878787878787878787878787878\"}\n"));
}

TEST_F(LogFolder, with_a_flipped_bit_is_found_damaged_at_its_place) {
    make(5000, 1024, 20);
    flip("wal-00000001-0000000000000400", 12288 + 128 + 50);
    std::string output;
    EXPECT_EQ(run("verify " + path, output), 1);
    EXPECT_THAT(output, HasSubstr("corrupt: wal-00000001-0000000000000400, byte " + std::to_string(12288 + 128)));
    EXPECT_EQ(run("verify --json " + path, output), 1);
    EXPECT_THAT(output, HasSubstr("\"damage\": \"corrupt\""));
    EXPECT_EQ(run("entries " + path, output), 1);
    flip("hard_state", 60);
    flip("hard_state", 4096 + 60);
    EXPECT_EQ(run("verify " + path, output), 2);
    EXPECT_THAT(output, HasSubstr("neither slot of hard_state can be read"));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Out of the system's cache, so that the disk is read.
void forget(const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        ::fdatasync(file);
        ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        ::close(file);
    }
}

// Prints how fast a log is read back, beside how fast the disk reads the same files. With LOCKSTEP_WAL_MIB=1024 it is a
// measure; as a test, which may share its disk with others, it looks at the result alone.
TEST_F(LogFolder, is_read_back_beside_the_disks_own_speed) {
    const std::uint64_t mib = from_environment("LOCKSTEP_WAL_MIB", 32);
    const std::uint64_t command = from_environment("LOCKSTEP_WAL_COMMAND_BYTES", 1000);
    make(mib * kMiB, std::min<std::uint64_t>(64, mib / 4) * kMiB, command);
    for (int round = 0; round < 3; ++round) {
        forget(path);
        auto start = std::chrono::steady_clock::now();
        std::uint64_t raw = 0;
        std::vector<char> piece(kMiB);
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            if (!entry.path().filename().string().starts_with("wal-")) continue;
            const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
            ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
            for (ssize_t got = 1; got > 0; raw += static_cast<std::uint64_t>(got)) {
                got = ::read(file, piece.data(), piece.size());
                ASSERT_GE(got, 0);
            }
            ::close(file);
        }
        const double raw_seconds = seconds_since(start);
        forget(path);
        start = std::chrono::steady_clock::now();
        const auto read = read_log(path);
        const double seconds = seconds_since(start);
        ASSERT_TRUE(read);
        EXPECT_EQ(read.value().end_position, tail.position);
        std::printf("disk alone: %.0f MiB/s; read back and verified: %.0f MiB/s, %.2f of it\n",
                    static_cast<double>(raw) / kMiB / raw_seconds,
                    static_cast<double>(read.value().bytes_read) / kMiB / seconds,
                    static_cast<double>(read.value().bytes_read) / seconds / (static_cast<double>(raw) / raw_seconds));
    }
}

}  // namespace
}  // namespace lockstep
