// What of the log on disk stays when the protocol asks for it again (S8).
#include "consensus/replica/wal_storage.h"

#include "log/disk/sim_disk.h"
#include "tests/unit/log/test_ring.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace lockstep::replica {
namespace {

constexpr std::uint64_t kRing = 4096;
constexpr std::uint64_t kGenesis = 4711;

// Performs each job when it is told to.
class Worker final : public DiskWorker {
 public:
    explicit Worker(log::SimDisk& disk) : disk_(disk) {}

    bool turn(log::Wal& wal) override {
        const auto outcome = std::exchange(outcome_, std::nullopt);
        if (outcome) wal.finish(*outcome);
        if (job_ == nullptr) job_ = wal.next();
        return outcome.has_value();
    }
    bool work() {
        if (job_ == nullptr) return false;
        outcome_ = log::perform_all(disk_, std::exchange(job_, nullptr)->operations());
        return true;
    }

 private:
    log::SimDisk& disk_;
    const log::DiskJob* job_ = nullptr;
    std::optional<Result<void>> outcome_;
};

// A follower's log of ten entries, all of them on its disk, the first eight committed.
class WalStorageTest : public testing::Test {
 protected:
    void SetUp() override {
        hard_.cluster_id = 1;
        hard_.replica = ReplicaId{1};
        hard_.genesis = kGenesis;
        hard_.ring_bytes = kRing;
        hard_.incarnation = Incarnation{5};
        hard_.base.checksum = kGenesis;
        ASSERT_TRUE(log::create_log(disk_, hard_));
        storage_.start(recovered());
        log::Chain chain(ring_, hard_.base);
        std::mt19937_64 random(1);
        for (int i = 0; i < 10; ++i) chain.append(40, random);
        for (const log::Appended& entry : chain.entries()) points_.push_back(entry.end);
        keep(1, hard_.base, points_[9], points_[7].index);
        work();
        ASSERT_EQ(said(1), points_[9]);
    }

    log::Recovered recovered() {
        log::TestRing fresh(kRing);
        log::Ring into = fresh.ring();
        auto found = log::recover(disk_, {1, ReplicaId{1}, kRing}, into);
        EXPECT_TRUE(found);
        return *found.value();
    }
    void keep(std::uint64_t generation, const log::Point& from, const log::Point& upto, Index committed,
              bool gather = false) {
        storage_.keep_log({generation, from, upto, committed, false, gather});
    }
    // Does all that the disk is to do. False: it has failed.
    bool work() {
        do {
            if (!storage_.take_outcomes(outcomes_)) return false;
        } while (worker_.work());
        return true;
    }
    // How far the log of that generation is said to be on disk.
    log::Point said(std::uint64_t generation) {
        log::Point furthest;
        for (const core::Event& outcome : std::exchange(outcomes_, {}))
            if (const auto* kept = std::get_if<core::event::LogKept>(&outcome); kept && kept->generation == generation)
                furthest = kept->to;
        return furthest;
    }

    std::mt19937_64 disk_random_{3};
    log::SimDisk disk_{[this](std::uint64_t bound) { return disk_random_() % bound; }};
    log::HardState hard_;
    log::TestRing ring_{kRing, kGenesis};
    log::TestRing copy_{kRing, kGenesis};
    Worker worker_{disk_};
    WalStorage storage_{ring_, copy_, worker_};
    std::vector<log::Point> points_;
    std::vector<core::Event> outcomes_;
};

// An old repair comes late: what it brings is there already. (hashicorp/raft commit 0f31a01, openraft commit 44381b0c)
TEST_F(WalStorageTest, what_is_asked_for_again_and_is_the_same_stays_as_it_is) {
    const std::uint64_t syncs = disk_.syncs();
    for (std::uint64_t generation = 2; generation < 6; ++generation) {
        SCOPED_TRACE("generation " + std::to_string(generation));
        // Of the new one nothing is known yet, then as far as the middle of what is there, then all.
        for (const std::size_t upto : {7u, 8u, 9u}) {
            keep(generation, points_[7], points_[upto], points_[7].index);
            ASSERT_TRUE(work());
            EXPECT_EQ(said(generation), points_[upto]);
            EXPECT_EQ(storage_.wal().appended(), points_[9]) << "what was not asked for again is cut";
        }
    }
    EXPECT_EQ(disk_.syncs(), syncs) << "what is on disk is written again";
    disk_.crash();
    EXPECT_EQ(recovered().end, points_[9]);
}

TEST_F(WalStorageTest, what_may_gather_goes_to_disk_when_there_is_enough_of_it_or_when_it_is_asked_for) {
    std::mt19937_64 random(2);
    log::Chain chain(ring_, points_[9]);
    for (int i = 0; i < 3; ++i) chain.append(40, random);
    const std::uint64_t syncs = disk_.syncs();
    const auto end = [&](std::size_t entry) { return chain.entries()[entry].end; };
    keep(1, points_[9], end(0), points_[7].index, true);
    ASSERT_TRUE(work());
    EXPECT_EQ(disk_.syncs(), syncs) << "one entry is less than a sixteenth of the ring";
    keep(1, end(0), end(1), points_[7].index, true);
    ASSERT_TRUE(work());
    EXPECT_EQ(disk_.syncs(), syncs + 1);
    EXPECT_EQ(said(1), end(1));
    keep(1, end(1), end(2), points_[7].index, true);
    keep(1, end(2), end(2), points_[7].index);
    ASSERT_TRUE(work());
    EXPECT_EQ(said(1), end(2)) << "asked for, with nothing new";
}

// Where it differs it is cut, and whatever call the power is lost at, the ones before it are there.
class WalStorageCrash : public WalStorageTest, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(WalStorageCrash, what_differs_is_cut_there_and_no_earlier) {
    std::mt19937_64 random(2);
    log::Chain other(ring_, points_[8]);
    for (int i = 0; i < 3; ++i) other.append(60, random);
    const log::Point end = other.tail();
    disk_.crash_in(GetParam());
    keep(2, points_[7], end, points_[7].index);
    const bool done = work();
    if (done) {
        EXPECT_EQ(said(2), end);
    }
    disk_.crash();
    const log::Recovered found = recovered();
    EXPECT_EQ(found.found, log::Damage::none) << found.story;
    EXPECT_GE(found.end.position, points_[8].position);
    if (done) {
        EXPECT_EQ(found.end, end);
    }
}

INSTANTIATE_TEST_SUITE_P(Calls, WalStorageCrash, testing::Range<std::uint64_t>(0, 16));

}  // namespace
}  // namespace lockstep::replica
