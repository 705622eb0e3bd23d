// The replicated data: keys with integer or text values.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep::counter {

// A number is kept as one, so that counting neither parses nor formats. Text that reads exactly like a number counts
// as that number.
using Value = std::variant<std::int64_t, std::string>;

// A hash map that looks keys up without making a string. It is cut into shards, so that growing it moves a small part
// of the keys at a time and never holds up the protocol. Used by one thread at a time.
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

 private:
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
    static constexpr std::size_t kShards = 256;

    Probe probe(std::string_view key) const;
    // By bits that the map does not use: it finds a slot by the highest ones, and tells slots apart by the lowest.
    Map& shard(const Probe& probe) { return shards_[probe.hash >> 24 & (kShards - 1)]; }

    // Random: nobody outside can choose keys that collide. Nothing that a client sees depends on it.
    std::uint64_t seed_;
    std::array<Map, kShards> shards_;
    std::uint64_t keys_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace lockstep::counter
