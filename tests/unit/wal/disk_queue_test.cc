// The kernel's queue for a log's writes and syncs: in order, a wake-up at the end, and what fails is said as a thread
// would.
#include "log/disk/disk_queue.h"

#include "consensus/replica/disk_thread.h"
#include "tests/unit/wal/wal_world.h"

#include <gmock/gmock.h>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::log {
namespace {

using testing::HasSubstr;

constexpr FileHandle kFile = 1;
constexpr std::uint64_t kRing = 64 * 1024;

struct DiskQueueTest : testing::Test {
    DiskQueueTest() : path((std::filesystem::temp_directory_path() / "lockstep_queue_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        disk = PosixDisk::open(path).value();
        wakes = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        queue = DiskQueue::make(*disk, wakes);
    }
    void SetUp() override {
        if (!queue) GTEST_SKIP() << "no io_uring here: built without liburing, or the kernel does not allow it";
    }
    ~DiskQueueTest() override {
        queue.reset();
        ::close(wakes);
        std::filesystem::remove_all(path);
    }

    // Sleeps until the kernel has said that something ended.
    bool woken() const {
        pollfd ready{wakes, POLLIN, 0};
        std::uint64_t count = 0;
        return ::poll(&ready, 1, 60'000) == 1 && ::read(wakes, &count, sizeof count) == sizeof count;
    }
    std::optional<DiskQueue::Ended> run(std::span<const DiskOperation> operations) {
        if (!queue->begin(operations)) return std::nullopt;
        while (woken())
            if (const auto ended = queue->ended()) return ended;
        return std::nullopt;
    }
    std::string text(std::uint64_t bytes) const {
        std::string found(bytes, '\0');
        found.resize(disk->read(kFile, 0, std::as_writable_bytes(std::span(found))).value());
        return found;
    }

    std::string path;
    std::unique_ptr<PosixDisk> disk;
    int wakes = -1;
    std::unique_ptr<DiskQueue> queue;
};

BytesView view(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST_F(DiskQueueTest, later_writes_of_a_job_come_over_earlier_ones) {
    ASSERT_TRUE(disk->perform(DiskOperation::create(kFile, FileName("file"), 0)));
    const std::string first = "aaaaaaaa", second = "bbbb", third = "cc";
    for (int round = 0; round < 200; ++round) {
        const DiskOperation job[] = {DiskOperation::write(kFile, 0, view(first)),
                                     DiskOperation::write(kFile, 0, view(second)),
                                     DiskOperation::write(kFile, 0, view(third)), DiskOperation::sync(kFile)};
        ASSERT_EQ(run(job), DiskQueue::Ended::done);
        ASSERT_EQ(text(8), "ccbbaaaa");
    }
    EXPECT_FALSE(queue->ended()) << "said once";
}

TEST_F(DiskQueueTest, what_is_neither_write_nor_sync_is_left_to_others) {
    const DiskOperation job[] = {DiskOperation::create(kFile, FileName("file"), 0), DiskOperation::sync(kFile)};
    EXPECT_FALSE(queue->begin(job));
    EXPECT_FALSE(queue->begin({}));
    EXPECT_TRUE(disk->list().value().empty());
}

TEST_F(DiskQueueTest, a_failure_names_the_file_and_nothing_behind_it_is_done) {
    ASSERT_TRUE(disk->perform(DiskOperation::create(kFile, FileName("file"), 0)));
    auto reading = PosixDisk::open_for_reading(path).value();
    ASSERT_TRUE(reading->perform(DiskOperation::open(kFile, FileName("file"))));
    queue = DiskQueue::make(*reading, wakes);
    const std::string bytes = "aaaaaaaa";
    const DiskOperation job[] = {DiskOperation::write(kFile, 0, view(bytes)), DiskOperation::sync(kFile)};
    ASSERT_EQ(run(job), DiskQueue::Ended::failed);
    EXPECT_THAT(queue->error().message(), HasSubstr("cannot write " + path + "/file at 0"));
    EXPECT_EQ(text(8), "");
    queue.reset();  // before the disk that it is of
}

// A limit of the process, as a full disk would: the kernel takes a part, and there the chain ends.
TEST_F(DiskQueueTest, a_write_that_is_cut_short_leaves_the_job_unfinished) {
    ASSERT_TRUE(disk->perform(DiskOperation::create(kFile, FileName("file"), 0)));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string bytes(8192, 'a');
    const DiskOperation job[] = {DiskOperation::write(kFile, 0, view(bytes)), DiskOperation::sync(kFile)};
    const auto ended = run(job);
    const auto by_thread = disk->perform(job[0]);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    EXPECT_EQ(ended, DiskQueue::Ended::unfinished);
    EXPECT_FALSE(by_thread) << "which then says why";
}

TEST_F(DiskQueueTest, a_log_over_many_laps_is_there_again) {
    const HardState hard = first_hard_state(kRing);
    ASSERT_TRUE(create_log(*disk, hard));
    TestRing ring(kRing, kGenesis), copy(kRing, kGenesis), again(kRing);
    Ring into = again.ring();
    Wal wal(*recover(*disk, identity_of(hard), into).value(), copy.ring());
    Point tail = hard.base;
    {
        DiskThread worker(*disk, [this] { ::eventfd_write(wakes, 1); }, std::move(queue));
        while (tail.position.value < 5 * kRing) {
            for (int count = 0; count < 50; ++count)
                log::append(ring, tail, EntryKind::command, Stamp{}, std::as_bytes(std::span("a command", 9)));
            ASSERT_EQ(wal.append(ring, tail.position), Taken::all);
            worker.turn(wal);
            while (wal.durable() != tail) {
                ASSERT_TRUE(woken()) << "nobody said that a job has ended";
                worker.turn(wal);
                ASSERT_FALSE(wal.stopped());
            }
        }
    }
    const auto recovered = recover(*disk, identity_of(hard), into);
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered.value()->end, tail);
    EXPECT_EQ(recovered.value()->found, Damage::none);
}

TEST_F(DiskQueueTest, ends_only_when_its_job_has) {
    ASSERT_TRUE(disk->perform(DiskOperation::create(kFile, FileName("file"), 0)));
    const std::string bytes(std::size_t{4} << 20, 'a');
    const DiskOperation job[] = {DiskOperation::write(kFile, 0, view(bytes)), DiskOperation::sync(kFile)};
    ASSERT_TRUE(queue->begin(job));
    queue.reset();
    EXPECT_EQ(text(bytes.size()), bytes);
}

}  // namespace
}  // namespace lockstep::log
