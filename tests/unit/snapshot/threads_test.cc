// The store with a real thread and a real disk: taken, read and removed at once.
#include "consensus/replica/background_thread.h"
#include "log/disk/posix_disk.h"
#include "tests/unit/snapshot/snapshot_world.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <semaphore>

namespace lockstep::replica {
namespace {

class Folder {
 public:
    Folder() {
        std::string name = testing::TempDir() + "lockstep_snapshots_XXXXXX";
        path = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

TEST(SnapshotStore, works_with_a_thread_on_a_real_disk) {
    const Folder folder;
    auto disk = log::PosixDisk::open(folder.path);
    ASSERT_TRUE(disk) << disk.error().message();
    const Bytes state = random_bytes(6'000'000);  // more than is written between two syncs
    log::SnapshotName last;
    {
        BackgroundThread background;
        std::counting_semaphore<> woken(0);
        SnapshotStore store(*disk.value(), background, [&] { woken.release(); });
        ASSERT_TRUE(store.load(false));
        for (std::uint64_t index = 1; index <= 5; ++index) {
            store.take(meta_at(index), std::make_unique<BytesState>(state, 100'000));
            if (!store.held().empty()) {
                // The one before, while this one is written.
                store.read_piece(ReplicaId{2}, last, 0, 1000);
                auto source = store.open(last);
                ASSERT_TRUE(source) << source.error().message();
                Bytes part(100'000);
                ASSERT_EQ(source.value()->read(part).value(), part.size());
                EXPECT_TRUE(std::ranges::equal(part, BytesView(state).first(part.size())));
            }
            std::vector<SnapshotOutcome> outcomes;
            while (store.taking()) {
                woken.acquire();
                const auto taken = store.take_outcomes(outcomes);
                ASSERT_TRUE(taken) << taken.error().message();
            }
            const auto taken = std::ranges::find(outcomes, Kind::taken, &SnapshotOutcome::kind);
            ASSERT_NE(taken, outcomes.end());
            last = taken->name;
            store.drop_older(Index{index});
        }
        // Ended in the middle of one, or before it has begun.
        store.take(meta_at(9), std::make_unique<BytesState>(state, 100'000));
    }
    BackgroundThread background;
    SnapshotStore store(*disk.value(), background, [] {});
    ASSERT_TRUE(store.load(false));
    // Older ones may be there still, where the end came before their removal.
    EXPECT_NE(std::ranges::find(store.held(), last, &SnapshotStore::Held::name), store.held().end());
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path)) files += file.is_regular_file() ? 1 : 0;
    EXPECT_EQ(files, store.held().size());
}

}  // namespace
}  // namespace lockstep::replica
