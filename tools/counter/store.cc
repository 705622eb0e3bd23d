#include "tools/counter/store.h"

#include "tools/counter/resp.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace lockstep::counter {
namespace {

// What a key costs besides its bytes: its slot, at the map's usual load.
constexpr std::uint64_t kKeyOverheadBytes = 112;

std::uint64_t text_bytes(const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    return text == nullptr ? 0 : text->size();
}

}  // namespace

Store::Store() {
    std::random_device random;
    seed_ = static_cast<std::uint64_t>(random()) << 32 | random();
    shards_.assign(kShards, Map(0, Hash{seed_}));
}

std::size_t Store::Hash::operator()(const std::string& key) const {
    return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

Store::Probe Store::probe(std::string_view key) const {
    return {key, XXH3_64bits_withSeed(key.data(), key.size(), seed_)};
}

Value* Store::find(std::string_view key) {
    const Probe at = probe(key);
    Map& map = shard(at);
    const auto found = map.find(at);
    return found == map.end() ? nullptr : &found->second;
}

Value& Store::find_or_add(std::string_view key) {
    const Probe at = probe(key);
    Map& map = changing_shard(at);
    const auto found = map.find(at);
    if (found != map.end()) return found->second;
    ++keys_;
    bytes_ += key.size() + kKeyOverheadBytes;
    return map.emplace(std::string(key), Value(std::int64_t{0})).first->second;
}

void Store::set(std::string_view key, std::string_view value) {
    Value& held = find_or_add(key);
    bytes_ -= text_bytes(held);
    if (const auto number = parse_integer(value)) {
        held = *number;
    } else if (auto* text = std::get_if<std::string>(&held)) {
        text->assign(value);
    } else {
        held = std::string(value);
    }
    bytes_ += text_bytes(held);
}

bool Store::erase(std::string_view key) {
    const Probe at = probe(key);
    Map& map = changing_shard(at);
    const auto found = map.find(at);
    if (found == map.end()) return false;
    --keys_;
    bytes_ -= found->first.size() + kKeyOverheadBytes + text_bytes(found->second);
    map.erase(found);
    return true;
}

}  // namespace lockstep::counter
