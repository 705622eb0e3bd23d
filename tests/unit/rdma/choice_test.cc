// Which device, port and GID: a pure function of what was found on the machine.
#include "transport/rdma/choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::transport::rdma {
namespace {

Gid v4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, last}; }
constexpr Gid kLinkLocal = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

PortInfo ethernet(std::vector<GidEntry> gids) { return {1, true, "active", true, 0, 1024, std::move(gids)}; }

// Two cards; on each the address stands as RoCE v1 first, as real tables have it.
std::vector<DeviceInfo> machine() {
    std::vector<DeviceInfo> found;
    for (std::uint8_t i = 1; i <= 2; ++i)
        found.push_back({"card" + std::to_string(i), true, {}, {ethernet({{0, GidKind::roce_v1, kLinkLocal, "eth"},
                                                                         {1, GidKind::roce_v2, kLinkLocal, "eth"},
                                                                         {2, GidKind::roce_v1, v4(i), "eth"},
                                                                         {3, GidKind::roce_v2, v4(i), "eth"}})}});
    return found;
}

TEST(Choice, entry_is_the_roce_v2_one_of_the_address) {
    const auto chosen = choose(machine(), {"10.9.0.2", "", 0, -1});
    ASSERT_TRUE(chosen.ok()) << chosen.error().message();
    EXPECT_EQ(chosen.value().device, "card2");
    EXPECT_EQ(chosen.value().gid_index, 3);
    EXPECT_EQ(chosen.value().text(), "card2, GID 3 10.9.0.2");
}

TEST(Choice, loopback_needs_a_device_and_then_takes_a_routable_entry) {
    const auto without = choose(machine(), {"127.0.0.1", "", 0, -1});
    ASSERT_FALSE(without.ok());
    EXPECT_NE(without.error().message().find("name a device"), std::string::npos) << without.error().message();
    const auto with = choose(machine(), {"127.0.0.1", "card1", 0, -1});
    ASSERT_TRUE(with.ok());
    EXPECT_EQ(with.value().gid_index, 3);
}

TEST(Choice, index_that_is_asked_for_wins) {
    const auto chosen = choose(machine(), {"10.9.0.9", "card1", 0, 1});
    ASSERT_TRUE(chosen.ok());
    EXPECT_EQ(chosen.value().gid_index, 1);
}

TEST(Choice, infiniband_goes_by_its_lid) {
    DeviceInfo device{"ib0", true, {}, {{1, true, "active", false, 7, 4096, {}}}};
    const auto chosen = choose({device}, {"10.9.0.1", "", 0, -1});
    ASSERT_TRUE(chosen.ok());
    EXPECT_FALSE(chosen.value().ethernet);
    device.ports[0].lid = 0;
    const auto refused = choose({device}, {"10.9.0.1", "", 0, -1});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message().find("subnet manager"), std::string::npos);
}

TEST(Choice, refusal_names_each_entry_and_why) {
    std::vector<DeviceInfo> found = machine();
    found[1].ports[0].active = false;
    found[1].ports[0].state = "down";
    found.push_back({"card3", true, "cannot be opened: Permission denied", {}});
    found.push_back({"card4", true, {}, {ethernet({})}});
    const auto refused = choose(found, {"10.9.0.2", "", 0, -1});
    ASSERT_FALSE(refused.ok());
    const std::string text = refused.error().message();
    for (const char* part : {"card1 port 1 GID 2 10.9.0.1 (RoCE v1, eth): RoCE v1, and RoCE v2 is needed",
                             "card1 port 1 GID 3 10.9.0.1 (RoCE v2, eth): not the replica's address, 10.9.0.2",
                             "card2 port 1: its state is down", "card3: cannot be opened: Permission denied",
                             "card4 port 1: its GID table is empty"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
    EXPECT_FALSE(choose({}, {"10.9.0.2", "", 0, -1}).ok());
}

}  // namespace
}  // namespace lockstep::transport::rdma
