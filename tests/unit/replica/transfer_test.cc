// What catching up says, as bytes and back.
#include "consensus/core/config.h"
#include "consensus/replica/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace lockstep::replica {
namespace {

using testing::HasSubstr;

Transfer full(BytesView bytes) {
    return {.kind = Transfer::Kind::snapshot,
            .genesis = 0x1234,
            .commit = {{7}, {640}, 99, Ballot::of(3, ReplicaId{2}), 5},
            .at = {1000},
            .most = 4096,
            .snapshot = {{{8}, {704}, 77, Ballot::of(2, ReplicaId{1}), 4}, 100'000, 4711},
            .offset = 512,
            .bytes = bytes};
}

TEST(Transfer, comes_back_as_it_was) {
    const std::vector<std::byte> data(1000, std::byte{0x5a});
    std::vector<std::byte> encoded(3);
    encode(full(data), encoded);
    ASSERT_TRUE(is_transfer(encoded));
    const auto decoded = decode_transfer(encoded);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    const Transfer& transfer = decoded.value();
    EXPECT_EQ(transfer.kind, Transfer::Kind::snapshot);
    EXPECT_EQ(transfer.genesis, 0x1234u);
    EXPECT_EQ(transfer.commit, full({}).commit);
    EXPECT_EQ(transfer.at, Position{1000});
    EXPECT_EQ(transfer.most, 4096u);
    EXPECT_EQ(transfer.snapshot, full({}).snapshot);
    EXPECT_EQ(transfer.offset, 512u);
    EXPECT_TRUE(std::ranges::equal(transfer.bytes, data));
}

TEST(Transfer, of_damaged_bytes_names_what_is_wrong) {
    std::vector<std::byte> bytes;
    encode(full({}), bytes);
    const auto error_of = [](std::vector<std::byte> changed) {
        const auto decoded = decode_transfer(changed);
        return decoded ? std::string("ok") : decoded.error().message();
    };
    EXPECT_EQ(error_of(bytes), "ok");
    EXPECT_THAT(error_of({bytes.begin(), bytes.begin() + 20}), HasSubstr("20 bytes: at least 136"));
    auto longer = bytes;
    longer.push_back({});
    EXPECT_THAT(error_of(longer), HasSubstr("it names 0 bytes of data: it has 1"));
    auto kind = bytes;
    kind[1] = std::byte{9};
    EXPECT_THAT(error_of(kind), HasSubstr("its kind is 9"));
    auto position = bytes;
    position[24] = std::byte{1};  // of the commit's position
    EXPECT_THAT(error_of(position), HasSubstr("multiples of 64"));
    auto offset = bytes;
    offset[135] = std::byte{1};
    EXPECT_THAT(error_of(offset), HasSubstr("at most the snapshot's bytes, 100000"));
}

TEST(ConfigBytes, come_back_as_they_were_and_are_checked) {
    core::Config config;
    for (std::uint8_t id = 1; id <= kMaxReplicas; ++id) config.voters.add({ReplicaId{id}, Incarnation{id * 1000u}});
    config.next.add({ReplicaId{9}, Incarnation{5}});
    const std::string bytes = bytes_of(config);
    const auto again = core::config_of(bytes);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value(), config);
    EXPECT_FALSE(core::config_of("").ok());
    EXPECT_FALSE(core::config_of(bytes.substr(0, bytes.size() - 1)).ok());
    std::string twice = bytes;
    std::memcpy(twice.data() + 11, bytes.data() + 2, 9);
    EXPECT_THAT(core::config_of(twice).error().message(), HasSubstr("twice"));
}

}  // namespace
}  // namespace lockstep::replica
