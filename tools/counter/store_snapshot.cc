// A store as bytes, and back: a head, then a record for each key. docs/counter.md describes them.
#include "tools/counter/store.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace lockstep::counter {
namespace {

struct Head {
    static constexpr std::uint64_t kMagic = 0x3152'544e'4f43'4b4c;  // "LKCONTR1": the digit is the version
    std::uint64_t magic;
    std::uint64_t keys;
};

struct RecordHead {
    std::uint32_t key_bytes;
    std::uint32_t text_bytes;  // kNumber: there is no text
    std::int64_t number;       // 0 where there is a text
};
constexpr std::uint32_t kNumber = 0xffff'ffff;
// Far above what a command can bring (--max-request-bytes), far below what would end the process.
constexpr std::uint32_t kMaxFieldBytes = std::uint32_t{1} << 30;

template <class Block>
void append(std::string& out, const Block& block) {
    out.append(reinterpret_cast<const char*>(&block), sizeof block);
}

void append_record(std::string& out, const std::string& key, const Value& value) {
    const auto* const text = std::get_if<std::string>(&value);
    append(out, RecordHead{.key_bytes = static_cast<std::uint32_t>(key.size()),
                           .text_bytes = text == nullptr ? kNumber : static_cast<std::uint32_t>(text->size()),
                           .number = text == nullptr ? std::get<std::int64_t>(value) : 0});
    out += key;
    if (text != nullptr) out += *text;
}

Result<void> write(SnapshotSink& sink, std::string_view text) { return sink.write(std::as_bytes(std::span(text))); }

Error not_ours(const std::string& why) {
    return Error("these are not a counter's data, or a newer version's: " + why);
}

// All of it, or an error.
Result<void> read_exactly(SnapshotSource& source, std::span<std::byte> into) {
    auto got = source.read(into);
    if (!got) return std::move(got).error();
    if (got.value() != into.size()) return not_ours("they end in the middle");
    return {};
}

template <class Block>
Result<void> read_block(SnapshotSource& source, Block& block) {
    return read_exactly(source, std::as_writable_bytes(std::span(&block, 1)));
}

Result<void> read_text(SnapshotSource& source, std::uint32_t bytes, std::string& text) {
    text.resize(bytes);
    return read_exactly(source, std::as_writable_bytes(std::span(text)));
}

}  // namespace

class StoreView final : public SnapshotView {
 public:
    StoreView(const Store& store, std::shared_ptr<Saving> saving)
        : store_(store), saving_(std::move(saving)), head_{Head::kMagic, store.keys_} {}
    ~StoreView() override {
        if (saving_) saving_->end();
    }

    Result<void> write(SnapshotSink& sink) override {
        if (!saving_) return Error("another snapshot of the counter is being written");
        std::string bytes;
        append(bytes, head_);
        for (std::size_t shard = 0; shard < Store::kShards; ++shard) {
            const bool there = saving_->take(shard, bytes, [&](std::string& out) { copy(store_, shard, out); });
            if (!there) return Error("the counter's data was replaced while it was being written");
            if (bytes.size() < kWriteBytes) continue;
            if (auto written = counter::write(sink, bytes); !written) return written;
            bytes.clear();
        }
        return counter::write(sink, bytes);
    }

    static void copy(const Store& store, std::size_t shard, std::string& out) {
        for (const auto& [key, value] : store.shards_[shard]) append_record(out, key, value);
    }

 private:
    static constexpr std::size_t kWriteBytes = std::size_t{64} << 10;

    const Store& store_;
    const std::shared_ptr<Saving> saving_;  // null: of a second one
    const Head head_;
};

std::unique_ptr<SnapshotView> Store::snapshot() {
    if (saving_ && !saving_->ended()) return std::make_unique<StoreView>(*this, nullptr);
    saving_ = std::make_shared<Saving>(kShards);
    return std::make_unique<StoreView>(*this, saving_);
}

void Store::save(std::size_t shard) {
    if (saving_->ended()) {
        saving_.reset();
        return;
    }
    saving_->before_change(shard, [&](std::string& out) { StoreView::copy(*this, shard, out); });
}

Result<void> Store::restore(SnapshotSource& source) {
    if (saving_) std::exchange(saving_, nullptr)->cancel();
    for (Map& map : shards_) map.clear();
    keys_ = 0;
    bytes_ = 0;
    Head head{};
    if (auto read = read_block(source, head); !read) return read;
    if (head.magic != Head::kMagic) return not_ours("they do not begin with LKCONTR1");
    std::string key;
    std::string text;
    for (std::uint64_t number = 0; number < head.keys; ++number) {
        RecordHead record{};
        if (auto read = read_block(source, record); !read) return read;
        const bool is_text = record.text_bytes != kNumber;
        if (record.key_bytes > kMaxFieldBytes || (is_text && record.text_bytes > kMaxFieldBytes))
            return not_ours("a key or a value is too long");
        if (auto read = read_text(source, record.key_bytes, key); !read) return read;
        if (is_text) {
            if (auto read = read_text(source, record.text_bytes, text); !read) return read;
            set(key, text);
        } else {
            find_or_add(key) = record.number;
        }
        if (keys_ != number + 1) return not_ours("a key comes twice");
    }
    std::byte more{};
    auto got = source.read(std::span(&more, 1));
    if (!got) return std::move(got).error();
    return got.value() == 0 ? Result<void>() : not_ours("there is more behind the last key");
}

}  // namespace lockstep::counter
