// The replicated data: keys with integer or text values.
#pragma once

#include "tools/counter/saving.h"

#include <lockstep/result.h>
#include <lockstep/state_machine.h>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep::counter {

// A number is kept as one, so that counting neither parses nor formats. Text that reads exactly like a number counts
// as that number.
using Value = std::variant<std::int64_t, std::string>;

// A hash map that looks keys up without making a string. It is cut into shards, so that growing it, or copying a part
// for a snapshot, concerns a small part of the keys at a time and never holds up the protocol. Used by one thread at a
// time, but for the view of a snapshot.
class Store {
 public:
    Store();
    // Null if there is none; valid until the next change.
    Value* find(std::string_view key);
    // The key's value, made as the number 0 if it is missing. Valid until the next change.
    Value& find_or_add(std::string_view key);
    void set(std::string_view key, std::string_view value);
    bool erase(std::string_view key);
    std::uint64_t keys() const { return keys_; }
    // An estimate of the memory that the data takes.
    std::uint64_t bytes() const { return bytes_; }

    // The data as it is now, to be written by another thread while this one goes on. The store outlives the view's
    // writing. One at a time: of a second one, while the first is being written, writing fails.
    std::unique_ptr<SnapshotView> snapshot();
    // Puts what a view has written in the place of all data. Errors: the source's; bytes that no view has written.
    Result<void> restore(SnapshotSource& source);

 private:
    friend class StoreView;
    struct Probe {
        std::string_view key;
        std::uint64_t hash;
    };
    struct Hash {
        using is_transparent = void;
        using is_avalanching = void;
        std::uint64_t seed = 0;
        std::size_t operator()(const Probe& probe) const { return probe.hash; }
        std::size_t operator()(const std::string& key) const;
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(const std::string& a, const std::string& b) const { return a == b; }
        bool operator()(const Probe& a, const std::string& b) const { return a.key == b; }
        bool operator()(const std::string& a, const Probe& b) const { return a == b.key; }
    };
    using Map = boost::unordered_flat_map<std::string, Value, Hash, Equal>;
    static constexpr std::size_t kShards = 16384;  // of 1 GiB of data one is 64 KiB: what is copied at once

    Probe probe(std::string_view key) const;
    // By bits that the map does not use: it finds a slot by the highest ones, and tells slots apart by the lowest.
    static std::size_t shard_of(const Probe& probe) { return probe.hash >> 24 & (kShards - 1); }
    Map& shard(const Probe& probe) { return shards_[shard_of(probe)]; }
    // The same, to be changed.
    Map& changing_shard(const Probe& probe) {
        if (saving_) [[unlikely]] save(shard_of(probe));
        return shard(probe);
    }
    void save(std::size_t shard);

    // Random: nobody outside can choose keys that collide. Nothing that a client sees depends on it.
    std::uint64_t seed_;
    std::vector<Map> shards_;
    std::uint64_t keys_ = 0;
    std::uint64_t bytes_ = 0;
    std::shared_ptr<Saving> saving_;  // while a view is written
};

}  // namespace lockstep::counter
