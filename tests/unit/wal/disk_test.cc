// The real disk does what its interface says; the simulated one loses what a real one may lose, and no more.
#include "log/disk/posix_disk.h"
#include "log/disk/sim_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>

namespace lockstep::log {
namespace {

using testing::HasSubstr;

BytesView view(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string read_text(Disk& disk, FileHandle file, std::uint64_t offset, std::uint64_t bytes) {
    std::string text(bytes, '?');
    const auto got = disk.read(file, offset, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(got) << got.error().message();
    text.resize(got ? got.value() : 0);
    return text;
}

// The same for both: the state machine above sees no difference.
void check_a_disk(Disk& disk) {
    ASSERT_TRUE(disk.perform(DiskOperation::create(1, FileName("a"), 100)));
    ASSERT_TRUE(disk.perform(DiskOperation::write(1, 10, view("hello"))));
    ASSERT_TRUE(disk.perform(DiskOperation::sync(1)));
    ASSERT_TRUE(disk.perform(DiskOperation::sync_folder()));
    EXPECT_EQ(read_text(disk, 1, 8, 8), std::string("\0\0hello\0", 8));
    EXPECT_EQ(read_text(disk, 1, 98, 10).size(), 2u);
    EXPECT_EQ(read_text(disk, 1, 100, 10), "");
    ASSERT_TRUE(disk.perform(DiskOperation::rename(FileName("a"), FileName("b"))));
    EXPECT_EQ(read_text(disk, 1, 10, 5), "hello") << "an open file keeps its bytes under another name";
    ASSERT_TRUE(disk.perform(DiskOperation::close(1)));
    ASSERT_TRUE(disk.perform(DiskOperation::close(1)));
    EXPECT_FALSE(disk.perform(DiskOperation::write(1, 0, view("x"))));
    EXPECT_FALSE(disk.perform(DiskOperation::sync(1)));
    EXPECT_FALSE(disk.perform(DiskOperation::open(1, FileName("a"))));
    ASSERT_TRUE(disk.perform(DiskOperation::open(2, FileName("b"))));
    ASSERT_TRUE(disk.perform(DiskOperation::create(3, FileName("c"), 0)));
    const auto files = disk.list();
    ASSERT_TRUE(files);
    ASSERT_EQ(files.value().size(), 2u);
    EXPECT_EQ(files.value()[0].name, FileName("b"));
    EXPECT_EQ(files.value()[0].bytes, 100u);
    ASSERT_TRUE(disk.perform(DiskOperation::remove(FileName("b"))));
    const auto again = disk.perform(DiskOperation::remove(FileName("b")));
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().message(), HasSubstr("b: No such file or directory"));
    ASSERT_TRUE(disk.perform(DiskOperation::create(3, FileName("c"), 7)));
    EXPECT_EQ(read_text(disk, 3, 0, 10), std::string(7, '\0'));
}

struct Folder {
    Folder() : path((std::filesystem::temp_directory_path() / "lockstep_disk_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

TEST(PosixDisk, does_what_a_disk_does) {
    const Folder folder;
    auto disk = PosixDisk::open(folder.path + "/data");
    ASSERT_TRUE(disk);
    check_a_disk(*disk.value());
}

TEST(SimDisk, does_what_a_disk_does) {
    SimDisk disk([](std::uint64_t) { return 0; });
    check_a_disk(disk);
}

TEST(PosixDisk, opens_files_close_on_exec) {
    const Folder folder;
    auto disk = PosixDisk::open(folder.path);
    ASSERT_TRUE(disk.value()->perform(DiskOperation::create(1, FileName("a"), 10)));
    int checked = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(entry.path(), gone);
        if (gone || !target.string().starts_with(folder.path)) continue;
        EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0) << target;
        ++checked;
    }
    EXPECT_EQ(checked, 2);
}

TEST(PosixDisk, opened_for_reading_changes_nothing) {
    const Folder folder;
    ASSERT_TRUE(PosixDisk::open(folder.path).value()->perform(DiskOperation::create(1, FileName("a"), 10)));
    auto disk = PosixDisk::open_for_reading(folder.path);
    ASSERT_TRUE(disk);
    ASSERT_TRUE(disk.value()->perform(DiskOperation::open(1, FileName("a"))));
    EXPECT_FALSE(disk.value()->perform(DiskOperation::write(1, 0, view("x"))));
    EXPECT_FALSE(disk.value()->perform(DiskOperation::remove(FileName("a"))));
    EXPECT_FALSE(PosixDisk::open_for_reading(folder.path + "/none"));
}

// What a system call refuses comes back as an error that names the path, the reason and the remedy.
TEST(PosixDisk, that_is_full_says_so) {
    const Folder folder;
    auto disk = PosixDisk::open(folder.path);
    ASSERT_TRUE(disk);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit before = limit;
    limit.rlim_cur = 8192;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto created = disk.value()->perform(DiskOperation::create(1, FileName("a"), 100'000));
    const auto written = disk.value()->perform(DiskOperation::write(1, 8000, view(std::string(1000, 'x'))));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(created);
    EXPECT_THAT(created.error().message(),
                HasSubstr("allocate 100000 bytes for " + folder.path + "/a: File too large"));
    // The first part fits, and is written; the rest is not, and that is an error.
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message(), HasSubstr("/a at 8192: File too large"));
    EXPECT_THAT(disk_error("write x", ENOSPC).message(), HasSubstr("No space left on device; free space"));
}

std::set<std::string> after_crashes(const std::function<void(SimDisk&)>& work) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random(seed);
        SimDisk disk([&](std::uint64_t bound) { return random() % bound; });
        static_cast<void>(disk.perform(DiskOperation::create(1, FileName("a"), 1024)));
        static_cast<void>(disk.perform(DiskOperation::write(1, 0, view("old"))));
        static_cast<void>(disk.perform(DiskOperation::sync(1)));
        static_cast<void>(disk.perform(DiskOperation::sync_folder()));
        work(disk);
        disk.crash();
        std::string found;
        const auto files = disk.list();
        for (const FileInfo& file : files.value()) {
            const auto bytes = disk.contents(file.name);
            found += std::string(file.name.view()) + ":";
            for (const std::size_t at : {0u, 512u})
                found += std::string(reinterpret_cast<const char*>(&bytes[at]), 3) + ".";
        }
        seen.insert(found);
    }
    return seen;
}

std::string text(const char* first, const char* second) {
    return std::string("a:") + first + "." + (*second == 0 ? std::string(3, '\0') : second) + ".";
}

TEST(SimDisk, crash_loses_any_part_of_what_was_not_synced_by_sectors) {
    const auto write = [](SimDisk& disk) {
        std::string bytes(1024, 'x');
        bytes.replace(0, 3, "new");
        bytes.replace(512, 3, "too");
        ASSERT_TRUE(disk.perform(DiskOperation::write(1, 0, view(bytes))));
    };
    EXPECT_EQ(after_crashes(write),
              (std::set<std::string>{text("old", ""), text("new", ""), text("old", "too"), text("new", "too")}));
    EXPECT_EQ(after_crashes([&](SimDisk& disk) {
                  write(disk);
                  ASSERT_TRUE(disk.perform(DiskOperation::sync(1)));
              }),
              (std::set<std::string>{text("new", "too")}));
}

TEST(SimDisk, failed_sync_may_lose_what_a_later_one_does_not_bring_back) {
    const auto seen = after_crashes([](SimDisk& disk) {
        ASSERT_TRUE(disk.perform(DiskOperation::write(1, 0, view("new"))));
        disk.fail_next(DiskOperation::Kind::sync);
        ASSERT_FALSE(disk.perform(DiskOperation::sync(1)));
        ASSERT_TRUE(disk.perform(DiskOperation::sync(1)));
        EXPECT_EQ(read_text(disk, 1, 0, 3), "new") << "and it can still be read";
    });
    EXPECT_EQ(seen, (std::set<std::string>{text("old", ""), text("new", "")}));
}

TEST(SimDisk, folder_changes_that_were_not_synced_may_be_undone) {
    const auto rename = [](SimDisk& disk) {
        ASSERT_TRUE(disk.perform(DiskOperation::rename(FileName("a"), FileName("b"))));
    };
    EXPECT_EQ(after_crashes(rename).size(), 2u);
    EXPECT_EQ(after_crashes([&](SimDisk& disk) {
                  rename(disk);
                  ASSERT_TRUE(disk.perform(DiskOperation::sync_folder()));
              }).size(), 1u);
}

TEST(SimDisk, misdirected_write_goes_elsewhere_and_succeeds) {
    std::mt19937_64 random(1);
    SimDisk disk([&](std::uint64_t bound) { return random() % bound; });
    ASSERT_TRUE(disk.perform(DiskOperation::create(1, FileName("a"), 64 * 512)));
    disk.misdirect_next();
    ASSERT_TRUE(disk.perform(DiskOperation::write(1, 100, view("hello"))));
    EXPECT_EQ(read_text(disk, 1, 100, 5), std::string(5, '\0'));
    ASSERT_TRUE(disk.perform(DiskOperation::write(1, 100, view("hello"))));
    EXPECT_EQ(read_text(disk, 1, 100, 5), "hello");
}

}  // namespace
}  // namespace lockstep::log
