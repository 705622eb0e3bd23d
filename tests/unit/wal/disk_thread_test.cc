// The disk's thread: jobs end in order, a disk that hangs is seen and holds nobody up, a failure stops the WAL.
#include "consensus/replica/disk_thread.h"
#include "log/disk/posix_disk.h"
#include "tests/unit/wal/wal_world.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <semaphore>
#include <string>

namespace lockstep::log {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kRing = 64 * 1024;

// A disk whose next sync waits until it is let go, or fails.
class GatedDisk final : public Disk {
 public:
    explicit GatedDisk(Disk& disk) : disk_(disk) {}
    Result<void> perform(const DiskOperation& operation) override {
        if (operation.kind == DiskOperation::Kind::sync) {
            ++syncs;
            if (gated) gate.acquire();
            if (failing) return Error("cannot fdatasync: Input/output error");
        }
        return disk_.perform(operation);
    }
    Result<std::uint64_t> read(FileHandle file, std::uint64_t offset, std::span<std::byte> into) override {
        return disk_.read(file, offset, into);
    }
    Result<std::vector<FileInfo>> list() override { return disk_.list(); }

    std::atomic<bool> gated{false};
    std::atomic<bool> failing{false};
    std::atomic<int> syncs{0};
    std::counting_semaphore<1000> gate{0};

 private:
    Disk& disk_;
};

struct DiskThreadTest : testing::Test {
    DiskThreadTest() : path((std::filesystem::temp_directory_path() / "lockstep_thread_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        real = PosixDisk::open(path).value();
        disk = std::make_unique<GatedDisk>(*real);
        const HardState hard = first_hard_state(kRing);
        EXPECT_TRUE(create_log(*disk, hard));
        Ring into = ring.ring();
        auto recovered = recover(*disk, identity_of(hard), into);
        wal.emplace(*recovered.value(), copy.ring());
        tail = hard.base;
    }
    ~DiskThreadTest() override { std::filesystem::remove_all(path); }

    void append_one() {
        log::append(ring, tail, EntryKind::command, Stamp{}, std::as_bytes(std::span("a command", 9)));
        ASSERT_EQ(wal->append(ring, tail.position), Taken::all);
    }
    // Takes turns until `done`, sleeping until the thread wakes it.
    template <class Condition>
    void turn_until(DiskThread& thread, Condition done) {
        thread.turn(*wal);
        const auto limit = std::chrono::steady_clock::now() + seconds(60);
        while (!done() && std::chrono::steady_clock::now() < limit) {
            static_cast<void>(woken.try_acquire_for(milliseconds(10)));
            thread.turn(*wal);
        }
        ASSERT_TRUE(done());
    }

    std::string path;
    std::unique_ptr<PosixDisk> real;
    std::unique_ptr<GatedDisk> disk;
    TestRing ring{kRing, kGenesis};
    TestRing copy{kRing, kGenesis};
    std::optional<Wal> wal;
    Point tail;
    std::counting_semaphore<100000> woken{0};
};

TEST_F(DiskThreadTest, makes_everything_durable_over_many_laps) {
    {
        DiskThread thread(*disk, [this] { woken.release(); });
        while (tail.position.value < 5 * kRing) {
            for (int count = 0; count < 50; ++count) append_one();
            if (tail.position - wal->durable().position > kRing / 2)
                turn_until(thread, [&] { return wal->durable() == wal->appended(); });
            thread.turn(*wal);
        }
        turn_until(thread, [&] { return wal->durable() == tail; });
    }
    TestRing again(kRing);
    Ring into = again.ring();
    const auto recovered = recover(*real, identity_of(first_hard_state(kRing)), into);
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered.value()->end, tail);
    EXPECT_EQ(recovered.value()->found, Damage::none);
}

TEST_F(DiskThreadTest, that_hangs_holds_up_nobody_and_what_gathers_takes_one_sync) {
    DiskThread thread(*disk, [this] { woken.release(); });
    append_one();
    turn_until(thread, [&] { return wal->durable() == tail && !wal->busy(); });
    disk->gated = true;
    const int syncs = disk->syncs;
    const Point before = tail;
    append_one();
    turn_until(thread, [&] { return disk->syncs == syncs + 1; });
    for (int count = 0; count < 100; ++count) {
        append_one();
        EXPECT_FALSE(thread.turn(*wal));
    }
    EXPECT_EQ(wal->durable(), before);
    EXPECT_GT(thread.waiting().count(), 0);
    disk->gated = false;
    disk->gate.release();
    turn_until(thread, [&] { return wal->durable() == tail; });
    EXPECT_EQ(disk->syncs, syncs + 2);
}

TEST_F(DiskThreadTest, that_fails_stops_the_wal) {
    DiskThread thread(*disk, [this] { woken.release(); });
    append_one();
    turn_until(thread, [&] { return wal->durable() == tail && !wal->busy(); });
    const Point before = tail;
    disk->failing = true;
    append_one();
    turn_until(thread, [&] { return wal->stopped().has_value(); });
    disk->failing = false;
    append_one();
    EXPECT_FALSE(thread.turn(*wal));
    EXPECT_EQ(wal->durable(), before);
}

TEST_F(DiskThreadTest, ends_with_a_job_in_the_middle) {
    disk->gated = true;
    auto thread = std::make_unique<DiskThread>(*disk, [this] { woken.release(); });
    append_one();
    turn_until(*thread, [&] { return disk->syncs == 1; });
    auto ended = std::async(std::launch::async, [&] { thread.reset(); });
    disk->gate.release();
    EXPECT_EQ(ended.wait_for(seconds(60)), std::future_status::ready);
}

}  // namespace
}  // namespace lockstep::log
