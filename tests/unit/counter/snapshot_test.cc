// The counter's snapshots: the data as it was at one moment, whatever changes while it is written, and back.
#include "tools/counter/store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>

namespace lockstep::counter {
namespace {

using testing::HasSubstr;

class StringSink final : public SnapshotSink {
 public:
    Result<void> write(BytesView bytes) override {
        if (room < bytes.size()) return Error("full");
        room -= bytes.size();
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return {};
    }
    std::string text;
    std::size_t room = ~std::size_t{0};
};

class StringSource final : public SnapshotSource {
 public:
    explicit StringSource(std::string_view text) : text_(text) {}
    Result<std::size_t> read(std::span<std::byte> into) override {
        const std::size_t bytes = std::min(into.size(), text_.size());
        if (bytes != 0) std::memcpy(into.data(), text_.data(), bytes);
        text_.remove_prefix(bytes);
        return bytes;
    }

 private:
    std::string_view text_;
};

std::string written(SnapshotView& view) {
    StringSink sink;
    const auto done = view.write(sink);
    EXPECT_TRUE(done) << done.error().message();
    return sink.text;
}

using Expected = std::map<std::string, Value>;

void expect_holds(Store& store, const Expected& expected, std::uint64_t bytes) {
    EXPECT_EQ(store.keys(), expected.size());
    EXPECT_EQ(store.bytes(), bytes);
    for (const auto& [key, value] : expected) {
        const Value* const held = store.find(key);
        ASSERT_NE(held, nullptr) << key;
        EXPECT_EQ(*held, value) << key;
    }
}

// Numbers and texts, some long, some empty; the same is remembered.
void fill(Store& store, Expected& expected, std::size_t keys) {
    for (std::size_t number = 0; number < keys; ++number) {
        const std::string key = "key:" + std::to_string(number);
        if (number % 3 == 0) {
            const std::string text(number % 100, 'x');
            store.set(key, text);
            expected[key] = text;
        } else {
            store.find_or_add(key) = static_cast<std::int64_t>(number) - 500;
            expected[key] = static_cast<std::int64_t>(number) - 500;
        }
    }
}

TEST(CounterSnapshot, what_was_written_is_restored_in_the_place_of_all_else) {
    for (const std::size_t keys : {0u, 1u, 20'000u}) {
        Store store;
        Expected expected;
        fill(store, expected, keys);
        const std::string bytes = written(*store.snapshot());
        Store other;
        other.set("other", "text");
        StringSource source(bytes);
        const auto restored = other.restore(source);
        ASSERT_TRUE(restored) << restored.error().message();
        expect_holds(other, expected, store.bytes());
        EXPECT_EQ(other.find("other"), nullptr);
    }
}

TEST(CounterSnapshot, shows_one_moment_whatever_comes_after_it) {
    Store store;
    Expected expected;
    fill(store, expected, 20'000);
    const std::uint64_t bytes = store.bytes();
    const auto view = store.snapshot();
    for (std::size_t number = 0; number < 20'000; number += 2) store.erase("key:" + std::to_string(number));
    for (std::size_t number = 0; number < 20'000; number += 3) store.set("key:" + std::to_string(number), "changed");
    store.set("new", "text");
    Store other;
    const std::string text = written(*view);
    StringSource source(text);
    ASSERT_TRUE(other.restore(source));
    expect_holds(other, expected, bytes);
    EXPECT_EQ(other.find("new"), nullptr);
}

TEST(CounterSnapshot, shows_one_moment_while_another_thread_writes_it) {
    Store store;
    Expected expected;
    fill(store, expected, 20'000);
    const std::uint64_t bytes = store.bytes();
    std::mt19937_64 random(5);
    for (int round = 0; round < 5; ++round) {
        auto view = store.snapshot();
        std::atomic<bool> done{false};
        std::string text;
        std::thread writer([&] {
            text = written(*view);
            view.reset();
            done = true;
        });
        Expected changed = expected;
        // Until it is done, and then some: the store has to find out that nobody needs copies any more.
        for (int after = 0; after < 1000; after += done ? 1 : 0) {
            const std::string key = "key:" + std::to_string(random() % 20'000);
            store.find_or_add(key) = std::int64_t{round};
            changed[key] = std::int64_t{round};
        }
        writer.join();
        Store other;
        StringSource source(text);
        ASSERT_TRUE(other.restore(source));
        expect_holds(other, expected, round == 0 ? bytes : other.bytes());
        expected = std::move(changed);
        if (HasFailure()) return;
    }
}

TEST(CounterSnapshot, restoring_ends_the_one_that_is_written) {
    Store store;
    Expected expected;
    fill(store, expected, 1000);
    const std::string bytes = written(*store.snapshot());
    const auto view = store.snapshot();
    StringSource source(bytes);
    ASSERT_TRUE(store.restore(source));
    StringSink sink;
    const auto done = view->write(sink);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message(), HasSubstr("was replaced"));
    expect_holds(store, expected, store.bytes());
}

TEST(CounterSnapshot, second_one_at_once_fails_and_a_later_one_does_not) {
    Store store;
    store.set("a", "b");
    auto first = store.snapshot();
    StringSink sink;
    EXPECT_FALSE(store.snapshot()->write(sink));
    written(*first);
    first.reset();
    StringSource source(sink.text = written(*store.snapshot()));
    EXPECT_TRUE(store.restore(source));
}

TEST(CounterSnapshot, error_of_the_sink_is_handed_on) {
    Store store;
    Expected expected;
    fill(store, expected, 20'000);
    StringSink sink;
    sink.room = 100'000;
    const auto done = store.snapshot()->write(sink);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message(), "full");
    // The store goes on, and so do later ones.
    store.set("key:1", "x");
    written(*store.snapshot());
}

TEST(CounterSnapshot, bytes_that_no_view_wrote_are_refused) {
    Store store;
    store.set("a", "some text");
    store.find_or_add("b") = std::int64_t{7};
    const std::string good = written(*store.snapshot());
    const auto refused = [](std::string_view bytes) {
        Store other;
        StringSource source(bytes);
        const auto restored = other.restore(source);
        return restored ? std::string() : restored.error().message();
    };
    EXPECT_EQ(refused(good), "");
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
        EXPECT_THAT(refused(std::string_view(good).substr(0, bytes)), HasSubstr("end in the middle")) << bytes;
    EXPECT_THAT(refused(good + "x"), HasSubstr("more behind the last key"));
    std::string other = good;
    other[7] = '2';
    EXPECT_THAT(refused(other), HasSubstr("a newer version's"));
    other = good;
    other[8] = 1;  // one key less
    EXPECT_THAT(refused(other), HasSubstr("more behind the last key"));
    other = good;
    other[19] = 0x7f;  // the first key's length
    EXPECT_THAT(refused(other), HasSubstr("too long"));
}

}  // namespace
}  // namespace lockstep::counter
