#include "tools/counter/group.h"

#include "tools/counter/machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace lockstep::counter {
namespace {

// An operation that owns its bytes.
struct Owned {
    CommandId id = CommandId::get;
    std::uint8_t flags = 0;
    std::int64_t by = 0;
    std::string value;
    std::vector<std::string> keys;
    friend bool operator==(const Owned&, const Owned&) = default;
};

void write(GroupWriter& group, const Owned& operation) {
    const std::vector<std::string_view> keys(operation.keys.begin(), operation.keys.end());
    switch (operation.id) {
        case CommandId::incrby:
        case CommandId::decrby: return group.add(operation.id, keys[0], operation.by);
        case CommandId::set: return group.add_set(operation.flags, keys[0], operation.value);
        case CommandId::mget:
        case CommandId::del:
        case CommandId::exists: return group.add(operation.id, keys);
        case CommandId::dbsize: return group.add_dbsize();
        default: return group.add(operation.id, keys[0]);
    }
}

std::vector<Owned> read(std::string_view bytes, bool& whole) {
    std::vector<Owned> operations;
    GroupReader reader(bytes);
    for (Operation operation; reader.next(operation);) {
        Owned& owned = operations.emplace_back();
        owned.id = operation.id;
        if (operation.id == CommandId::dbsize) continue;
        if (operation.id == CommandId::mget || operation.id == CommandId::del || operation.id == CommandId::exists) {
            FieldReader keys = operation.keys;
            for (std::string_view key; keys.take_text(key);) owned.keys.emplace_back(key);
            EXPECT_EQ(owned.keys.size(), operation.key_count);
            continue;
        }
        owned.keys.emplace_back(operation.key);
        if (operation.id == CommandId::set) {
            owned.flags = operation.flags;
            owned.value = operation.value;
        }
        if (operation.id == CommandId::incrby || operation.id == CommandId::decrby) owned.by = operation.by;
    }
    whole = reader.whole();
    return operations;
}

rc::Gen<Owned> any_operation() {
    return rc::gen::exec([] {
        Owned owned;
        owned.id = static_cast<CommandId>(*rc::gen::inRange(1, 11));
        const bool many = owned.id == CommandId::mget || owned.id == CommandId::del || owned.id == CommandId::exists;
        if (owned.id != CommandId::dbsize) {
            const std::size_t count = many ? *rc::gen::inRange<std::size_t>(0, 5) : 1;
            owned.keys = *rc::gen::container<std::vector<std::string>>(count, rc::gen::arbitrary<std::string>());
        }
        if (owned.id == CommandId::set) {
            owned.value = *rc::gen::arbitrary<std::string>();
            owned.flags = *rc::gen::inRange<std::uint8_t>(0, 8);
        }
        if (owned.id == CommandId::incrby || owned.id == CommandId::decrby)
            owned.by = *rc::gen::arbitrary<std::int64_t>();
        return owned;
    });
}

std::string encode(const std::vector<Owned>& operations, Resp resp = Resp::v2) {
    std::string bytes;
    GroupWriter group(bytes);
    group.begin(resp);
    for (const Owned& operation : operations) write(group, operation);
    return bytes;
}

RC_GTEST_PROP(Group, what_is_written_is_read, ()) {
    const auto operations = *rc::gen::container<std::vector<Owned>>(any_operation());
    const std::string bytes = encode(operations, Resp::v3);
    bool whole = false;
    RC_ASSERT(read(bytes, whole) == operations);
    RC_ASSERT(whole);
    RC_ASSERT(GroupReader(bytes).resp() == Resp::v3);
    RC_ASSERT(summarize(bytes).commands == operations.size());
}

RC_GTEST_PROP(Group, a_cut_one_shows_only_whole_commands_of_the_original, ()) {
    const auto operations = *rc::gen::container<std::vector<Owned>>(any_operation());
    const std::string bytes = encode(operations);
    const std::string cut = bytes.substr(0, *rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    bool whole = false;
    const auto shown = read(cut, whole);
    RC_ASSERT(shown.size() <= operations.size());
    RC_ASSERT(std::equal(shown.begin(), shown.end(), operations.begin()));
}

// Whatever the bytes of an entry are, replicas that apply it agree, with a reply or without.
RC_GTEST_PROP(Group, any_bytes_do_the_same_to_every_replica, (const std::vector<std::uint8_t>& garbage)) {
    const auto operations = *rc::gen::container<std::vector<Owned>>(any_operation());
    std::string bytes = encode(operations);
    for (const std::uint8_t byte : garbage) {
        bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(byte);
    }
    Store leader;
    Store follower;
    std::string replies;
    RC_ASSERT(execute(leader, bytes, &replies, 1 << 20) == execute(follower, bytes, nullptr, 1 << 20));
    RC_ASSERT(leader.keys() == follower.keys());
    RC_ASSERT(leader.bytes() == follower.bytes());
}

std::string run(Store& store, const std::string& group, std::size_t reply_limit = 1 << 20) {
    std::string replies;
    execute(store, group, &replies, reply_limit);
    return replies;
}

TEST(Group, unknown_version_is_an_error_and_changes_nothing) {
    Store store;
    std::string bytes = encode({{CommandId::incr, 0, 0, {}, {"x"}}});
    bytes[0] = 2;
    EXPECT_EQ(run(store, bytes), "-" + std::string(kMalformedGroup) + "\r\n");
    EXPECT_EQ(store.keys(), 0U);
    EXPECT_FALSE(summarize(bytes).whole);
}

TEST(Group, malformed_rest_is_an_error_after_what_was_well_formed) {
    Store store;
    std::string bytes = encode({{CommandId::incr, 0, 0, {}, {"x"}}});
    bytes += "\x7f";
    EXPECT_EQ(run(store, bytes), ":1\r\n-" + std::string(kMalformedGroup) + "\r\n");
    EXPECT_EQ(store.keys(), 1U);
}

TEST(Execute, decrement_by_the_lowest_number_is_refused) {
    Store store;
    EXPECT_EQ(run(store, encode({{CommandId::decrby, 0, std::numeric_limits<std::int64_t>::min(), {}, {"x"}}})),
              "-ERR decrement would overflow\r\n");
}

TEST(Execute, replies_stay_within_their_limit_and_state_does_not_depend_on_it) {
    Store store;
    std::vector<Owned> operations = {{CommandId::set, 0, 0, std::string(1000, 'v'), {"x"}}};
    for (int i = 0; i < 10; ++i) operations.push_back({CommandId::get, 0, 0, {}, {"x"}});
    operations.push_back({CommandId::mget, 0, 0, {}, {"y", "x", "y"}});
    operations.push_back({CommandId::incr, 0, 0, {}, {"n"}});
    const std::string replies = run(store, encode(operations), 2500);
    std::size_t errors = 0;
    std::size_t count = 0;
    for (std::string_view left = replies; !left.empty(); ++count) {
        errors += left[0] == '-' ? 1 : 0;
        left.remove_prefix(reply_bytes(left).value());
    }
    EXPECT_EQ(count, operations.size());
    EXPECT_EQ(errors, 9U);
    EXPECT_TRUE(replies.ends_with(":1\r\n"));
}

TEST(Store, bytes_and_keys_return_to_nothing) {
    Store store;
    store.set("a", "text that is long");
    store.set("a", "7");
    store.set("a", "short");
    store.find_or_add("b");
    EXPECT_EQ(store.keys(), 2U);
    EXPECT_GT(store.bytes(), 0U);
    EXPECT_TRUE(store.erase("a"));
    EXPECT_FALSE(store.erase("a"));
    EXPECT_TRUE(store.erase("b"));
    EXPECT_EQ(store.keys(), 0U);
    EXPECT_EQ(store.bytes(), 0U);
}

}  // namespace
}  // namespace lockstep::counter
