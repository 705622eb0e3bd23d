// Snapshots on a simulated disk, with a background whose work is done when the test says so.
#pragma once

#include "consensus/replica/snapshot_store.h"
#include "log/disk/sim_disk.h"
#include "log/snapshot/format.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::replica {

using Bytes = std::vector<std::byte>;
using Kind = SnapshotOutcome::Kind;

inline Bytes random_bytes(std::size_t count, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

inline log::SnapshotMeta meta_at(std::uint64_t index) {
    return {.cluster_id = 7,
            .genesis = 0x9e15,
            .ring_bytes = 4096,
            .at = {Index{index}, Position{index * 64}, index * 31, Ballot::of(3, ReplicaId{2}), index * 1000},
            .config = "voters 1 2 3"};
}

// Hands the state over in pieces of that size.
class BytesState final : public SnapshotView {
 public:
    BytesState(Bytes bytes, std::size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
    Result<void> write(SnapshotSink& sink) override {
        for (BytesView left = bytes_; !left.empty(); left = left.subspan(std::min(piece_, left.size())))
            if (auto written = sink.write(left.first(std::min(piece_, left.size()))); !written) return written;
        return {};
    }

 private:
    Bytes bytes_;
    std::size_t piece_;
};

class ManualBackground final : public Background {
 public:
    void run(std::function<void()> work) override { waiting.push_back(std::move(work)); }
    void work_all() {
        while (!waiting.empty()) {
            const auto work = std::move(waiting.front());
            waiting.pop_front();
            work();
        }
    }
    std::deque<std::function<void()>> waiting;
};

inline log::SimDisk make_sim_disk(std::uint64_t seed = 1) {
    return log::SimDisk([random = std::mt19937_64(seed)](std::uint64_t bound) mutable { return random() % bound; });
}

// A replica's store over `disk`, from its start to its end.
class World {
 public:
    explicit World(log::SimDisk& on) : disk(on), store(on, background, [this] { ++wakes; }) {}

    Result<void> load(bool none_counts = false) { return store.load(none_counts); }
    void take(std::uint64_t index, Bytes state, std::size_t piece = 1000) {
        store.take(meta_at(index), std::make_unique<BytesState>(std::move(state), piece));
    }
    // What came of all that was asked for.
    Result<std::vector<SnapshotOutcome>> outcomes() {
        background.work_all();
        std::vector<SnapshotOutcome> found;
        if (auto taken = store.take_outcomes(found); !taken) return std::move(taken).error();
        return found;
    }
    // Takes one that has to succeed.
    log::SnapshotName taken(std::uint64_t index, Bytes state) {
        take(index, std::move(state));
        auto found = outcomes();
        EXPECT_TRUE(found) << found.error().message();
        EXPECT_EQ(found.value().size(), 1u);
        EXPECT_EQ(found.value().at(0).kind, Kind::taken) << found.value().at(0).why;
        return found.value().at(0).name;
    }
    // Hands a whole file in, in pieces; what the last one led to.
    Result<std::vector<SnapshotOutcome>> received(const log::SnapshotName& name, BytesView file) {
        store.receive(name);
        for (; !file.empty(); file = file.subspan(std::min<std::size_t>(40'000, file.size())))
            store.write_piece(file.first(std::min<std::size_t>(40'000, file.size())));
        return outcomes();
    }
    // The state of a complete one, or the error.
    Result<Bytes> state_of(const log::SnapshotName& name, std::size_t piece = 777) {
        auto source = store.open(name);
        if (!source) return std::move(source).error();
        Bytes state;
        for (;;) {
            Bytes part(piece);
            auto got = source.value()->read(part);
            if (!got) return std::move(got).error();
            state.insert(state.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got.value()));
            if (got.value() == 0) return state;
        }
    }
    Bytes file_of(const log::SnapshotName& name) const { return disk.contents(snapshot_file_name(name)); }

    log::SimDisk& disk;
    ManualBackground background;
    int wakes = 0;
    SnapshotStore store;
};

inline std::vector<std::string> files_on(log::SimDisk& disk) {
    std::vector<std::string> names;
    const auto files = disk.list();
    for (const log::FileInfo& file : files.value()) names.emplace_back(file.name.view());
    return names;
}

}  // namespace lockstep::replica
