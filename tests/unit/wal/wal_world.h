// A WAL on a simulated disk, a ring that it copies from, and a witness who remembers everything that was appended and
// everything that the WAL has said is kept.
#pragma once

#include "log/disk/sim_disk.h"
#include "log/wal/wal.h"
#include "tests/unit/log/test_ring.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::log {

inline constexpr std::uint64_t kGenesis = 0x5eed'0f'a'109'1234;

inline HardState first_hard_state(std::uint64_t ring_bytes) {
    HardState hard{.cluster_id = 77,
                   .replica = ReplicaId{2},
                   .genesis = kGenesis,
                   .ring_bytes = ring_bytes,
                   .incarnation = Incarnation{0xabc},
                   .promised = {},
                   .promised_to = {},
                   .era = 1,
                   .base = {},
                   .floor = {},
                   .owed = {}};
    hard.base.checksum = kGenesis;
    return hard;
}

inline Identity identity_of(const HardState& hard) { return {hard.cluster_id, hard.replica, hard.ring_bytes}; }

class WalWorld {
 public:
    explicit WalWorld(std::uint64_t seed, std::uint64_t ring_bytes = 2048)
        : random(seed),
          disk([this](std::uint64_t bound) { return disk_random_() % bound; }),
          hard(first_hard_state(ring_bytes)),
          ring(ring_bytes, kGenesis),
          copy(ring_bytes, kGenesis),
          disk_random_(seed * 31 + 7) {
        tail = hard.base;
        acknowledged = tail;
        points[tail.position.value] = tail;
        EXPECT_TRUE(create_log(disk, hard));
        open(*recover_now());
    }

    // -- What happens ------------------------------------------------------------------------------------------------

    void append_entry(std::uint64_t payload_bytes) {
        Chain chain(ring, tail);
        chain.append(payload_bytes, random);
        for (const Appended& entry : chain.entries()) {
            appended.insert(entry.end.checksum);
            points[entry.end.position.value] = entry.end;
        }
        tail = chain.tail();
    }
    void append_random() { append_entry(random() % 8 == 0 ? random() % (hard.ring_bytes / 4 - 48) : random() % 100); }

    // Not further ahead of the WAL than the ring is long.
    bool room() const { return tail.position - wal->durable().position < hard.ring_bytes / 2; }
    void hand_over() {
        ASSERT_NE(wal->append(ring, tail.position), Taken::broken);
        ASSERT_LE(wal->appended().position, tail.position);
    }

    void truncate(const Point& at) {
        points.erase(points.upper_bound(at.position.value), points.end());
        tail = at;
        // Another leader's entries come next.
        tail.ballot.value = at.ballot.value;
        if (wal->appended().position > at.position) wal->truncate(at);
        if (acknowledged.position > at.position) acknowledged = at;
    }
    Point random_point(Position from) {
        const auto first = points.lower_bound(from.value);
        const auto count = static_cast<std::uint64_t>(std::distance(first, points.end()));
        auto chosen = first;
        std::advance(chosen, static_cast<std::ptrdiff_t>(random() % count));
        return chosen->second;
    }
    void start_anew(const Point& base) {
        old_log = std::pair(wal->kept().era, acknowledged);
        old_points = points;
        wal->start_anew(base);
        tail = base;
        points = {{base.position.value, base}};
        acknowledged = base;
    }
    void promise() {
        ++promised;
        wal->promise(Ballot{promised}, Incarnation{promised * 3});
    }

    // Performs the next job, if there is one; what it acknowledges is remembered.
    bool work() {
        const DiskJob* const job = wal->next();
        if (job == nullptr) return false;
        finish(perform_all(disk, job->operations()));
        return true;
    }
    void finish(const Result<void>& outcome) {
        wal->finish(outcome);
        if (wal->kept().era == hard_era()) old_log.reset();
        if (wal->durable().position > acknowledged.position) acknowledged = wal->durable();
        kept_promise = std::max(kept_promise, wal->kept().promised);
    }
    void work_all() {
        for (int jobs = 0; work(); ++jobs) ASSERT_LT(jobs, 10'000);
    }
    std::uint64_t hard_era() const { return wal_era; }

    // -- Restart -----------------------------------------------------------------------------------------------------

    std::optional<Recovered> recover_now(std::vector<Point>* ends = nullptr) {
        TestRing fresh(hard.ring_bytes);
        Ring into = fresh.ring();
        RecoverOptions options;
        options.visit = [&](const VerifiedEntry& entry) {
            if (ends != nullptr) ends->push_back(entry.end);
            EXPECT_TRUE(appended.empty() || appended.contains(entry.end.checksum)) << "an entry that nobody appended";
        };
        auto recovered = recover(disk, identity_of(hard), into, options);
        EXPECT_TRUE(recovered) << recovered.error().message();
        if (!recovered || !recovered.value()) return std::nullopt;
        return std::move(recovered).value();
    }
    void open(const Recovered& recovered) {
        wal = std::make_unique<Wal>(recovered, copy.ring());
        wal_era = recovered.hard.era;
    }

    // Power is lost and comes back; the log is opened again with all that it has.
    void restart() {
        disk.crash();
        const auto recovered = recover_now();
        ASSERT_TRUE(recovered);
        open(*recovered);
    }

    std::mt19937_64 random;
    SimDisk disk;
    HardState hard;
    TestRing ring;  // whose bytes are appended
    TestRing copy;
    std::unique_ptr<Wal> wal;
    std::uint64_t wal_era = 1;

    Point tail;                             // of the ring
    std::map<std::uint64_t, Point> points;  // of the present log
    std::set<std::uint64_t> appended;       // checksums of all entries there ever were
    Point acknowledged{};                   // the highest durable() that no truncation has taken back
    Ballot kept_promise;
    std::uint64_t promised = 0;
    std::optional<std::pair<std::uint64_t, Point>> old_log;  // until the new era is on disk: the old one's era and end
    std::map<std::uint64_t, Point> old_points;

 private:
    std::mt19937_64 disk_random_;
};

}  // namespace lockstep::log
