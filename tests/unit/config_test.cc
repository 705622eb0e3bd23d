// A replica's config: every bound, and every kind of mistake in a file.
#include "consensus/replica/config_file.h"
#include "proto/config.pb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Options good_options() {
    Options options;
    options.cluster_id = 4711;
    options.id = ReplicaId{2};
    options.members = {{ReplicaId{1}, "127.0.0.1:7101", 0, ""},
                       {ReplicaId{2}, "[::1]:7102", 3, "localhost:7202"},
                       {ReplicaId{3}, "r3.example.org:7103", 0, "127.0.0.1:7203"}};
    options.data_folder = "data";
    return options;
}

constexpr const char* kGoodText = R"(cluster_id: 4711
id: 1
members { id: 1 address: "127.0.0.1:7101" client_address: "127.0.0.1:7201" priority: 5 }
members {
    id: 2
    address: "127.0.0.1:7102"
}
data_folder: "data"
form: true
ring_bytes: 1048576
election_timeout_ms: 100
heartbeat_ms: 20
max_queued_proposals: 7
max_queued_bytes: 8
polling: adaptive
spin_us: 9
transport: rdma
rdma_device: "mlx5_0"
rdma_port: 2
rdma_gid_index: 3
)";

// kGoodText with one piece of it replaced.
std::string text_with(const std::string& old_piece, const std::string& new_piece) {
    std::string text = kGoodText;
    const std::size_t at = text.find(old_piece);
    EXPECT_NE(at, std::string::npos) << old_piece;
    return text.replace(at, old_piece.size(), new_piece);
}

std::string error_of(const std::string& text) {
    const Result<Options> result = parse_config(text, "a.textproto");
    return result.ok() ? "no error" : result.error().message();
}

// -- Bounds ----------------------------------------------------------------------------------------------------------

TEST(Options, good_ones_pass) {
    const Result<void> result = good_options().check();
    EXPECT_TRUE(result.ok()) << result.error().message();
}

TEST(Options, one_member_alone_may_let_the_system_pick_its_port) {
    Options options = good_options();
    options.id = ReplicaId{1};
    options.members = {{ReplicaId{1}, "127.0.0.1:0", 0, "127.0.0.1:0"}};
    EXPECT_FALSE(options.check().ok()) << "peer and client port are written alike";
    options.members[0].client_address.clear();
    EXPECT_TRUE(options.check().ok());
}

struct BadOption {
    const char* name;
    std::function<void(Options&)> change;
    const char* message;
};

void PrintTo(const BadOption& bad, std::ostream* out) { *out << bad.name; }

class BadOptions : public testing::TestWithParam<BadOption> {};

TEST_P(BadOptions, are_refused_with_key_value_and_range) {
    Options options = good_options();
    GetParam().change(options);
    const Result<void> result = options.check();
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message(), StartsWith(GetParam().message));
}

const BadOption kBadOptions[] = {
    {"cluster_id_zero", [](Options& o) { o.cluster_id = 0; }, "cluster_id: is missing or 0"},
    {"id_zero", [](Options& o) { o.id = {}; }, "id: is missing or 0: 1 to 255"},
    {"id_of_no_member", [](Options& o) { o.id = ReplicaId{9}; }, "id: 9 is no member's: the members are 1, 2, 3"},
    {"no_members", [](Options& o) { o.members.clear(); }, "members: is empty: 1 to 7"},
    {"eight_members", [](Options& o) { o.members.resize(8); }, "members: 8 members are too many: 7 at most"},
    {"member_without_id", [](Options& o) { o.members[1].id = {}; }, "members[1].id: is missing or 0"},
    {"id_used_twice", [](Options& o) { o.members[2].id = ReplicaId{1}; }, "members[2].id: 1 is another member's too"},
    {"no_address", [](Options& o) { o.members[0].address.clear(); }, "members[0].address: is missing"},
    {"no_port", [](Options& o) { o.members[0].address = "localhost"; },
     "members[0].address: \"localhost\" has no port"},
    {"empty_port", [](Options& o) { o.members[0].address = "a:"; },
     "members[0].address: \"a:\": port \"\" is not in 1 to 65535"},
    {"port_zero", [](Options& o) { o.members[0].address = "a:0"; },
     "members[0].address: \"a:0\": port \"0\" is not in 1 to 65535"},
    {"port_too_large", [](Options& o) { o.members[0].address = "a:65536"; },
     "members[0].address: \"a:65536\": port \"65536\" is not in 1 to 65535"},
    {"port_past_any_number", [](Options& o) { o.members[0].address = "a:99999999999999"; },
     "members[0].address: \"a:99999999999999\": port"},
    {"port_of_letters", [](Options& o) { o.members[0].address = "a:1x"; },
     "members[0].address: \"a:1x\": port \"1x\" is not in 1 to 65535"},
    {"port_negative", [](Options& o) { o.members[0].address = "a:-1"; }, "members[0].address: \"a:-1\": port \"-1\""},
    {"no_host", [](Options& o) { o.members[0].address = ":7"; }, "members[0].address: \":7\" has no host"},
    {"empty_brackets", [](Options& o) { o.members[0].address = "[]:7"; }, "members[0].address: \"[]:7\" has no host"},
    {"bare_ipv6", [](Options& o) { o.members[0].address = "::1:7"; },
     "members[0].address: \"::1:7\" is ambiguous: an IPv6 address goes in brackets"},
    {"url", [](Options& o) { o.members[0].address = "tcp/a:7"; },
     "members[0].address: \"tcp/a:7\": the host has a character"},
    {"control_character", [](Options& o) { o.members[0].address = "a\x01:7"; },
     "members[0].address: \"a\\x01:7\": the host has a character"},
    {"long_address", [](Options& o) { o.members[0].address = std::string(300, 'a') + ":7"; },
     "members[0].address: \"aaaaaaaa"},
    {"address_used_twice", [](Options& o) { o.members[2].address = o.members[0].address; },
     "members[2].address: \"127.0.0.1:7101\" is used twice"},
    {"bad_client_address", [](Options& o) { o.members[1].client_address = "x"; },
     "members[1].client_address: \"x\" has no port"},
    {"client_address_used_twice", [](Options& o) { o.members[1].client_address = "127.0.0.1:7101"; },
     "members[1].client_address: \"127.0.0.1:7101\" is used twice"},
    {"no_data_folder", [](Options& o) { o.data_folder.clear(); }, "data_folder: is missing"},
    {"nul_in_data_folder", [](Options& o) { o.data_folder = std::string("a\0b", 3); },
     "data_folder: \"a\\x00b\" has a control character"},
    {"long_data_folder", [](Options& o) { o.data_folder = std::string(2000, 'x'); }, "data_folder: \"xxxx"},
    {"ring_too_small", [](Options& o) { o.ring_bytes = kMinRingBytes / 2; },
     "ring_bytes: 524288 is not in 1048576 to 2147483648, a power of two"},
    {"ring_too_large", [](Options& o) { o.ring_bytes = kMaxRingBytes * 2; },
     "ring_bytes: 4294967296 is not in 1048576 to 2147483648, a power of two"},
    {"ring_no_power_of_two", [](Options& o) { o.ring_bytes = 3'000'000; },
     "ring_bytes: 3000000 is not a power of two; the nearest below is 2097152"},
    {"election_too_short", [](Options& o) { o.election_timeout_ms = 9; },
     "election_timeout_ms: 9 is not in 10 to 60000"},
    {"election_too_long", [](Options& o) { o.election_timeout_ms = 60'001; },
     "election_timeout_ms: 60001 is not in 10 to 60000"},
    {"heartbeat_zero", [](Options& o) { o.heartbeat_ms = 0; }, "heartbeat_ms: 0 is not in 1 to 62"},
    {"heartbeat_too_long", [](Options& o) { o.heartbeat_ms = 63; },
     "heartbeat_ms: 63 is not in 1 to 62, a quarter of election_timeout_ms"},
    {"queue_of_none", [](Options& o) { o.max_queued_proposals = 0; },
     "max_queued_proposals: 0 is not in 1 to 1048576"},
    {"queue_too_long", [](Options& o) { o.max_queued_proposals = (1u << 20) + 1; },
     "max_queued_proposals: 1048577 is not in 1 to 1048576"},
    {"queue_bytes_zero", [](Options& o) { o.max_queued_bytes = 0; }, "max_queued_bytes: 0 is not in 1 to 4294967296"},
    {"queue_bytes_too_many", [](Options& o) { o.max_queued_bytes = (std::uint64_t{1} << 32) + 1; },
     "max_queued_bytes: 4294967297 is not in 1 to 4294967296"},
    {"no_such_polling", [](Options& o) { o.polling = static_cast<Polling>(7); },
     "polling: 7 is none of blocking, adaptive, spin"},
    {"no_such_transport", [](Options& o) { o.transport = static_cast<Transport>(9); },
     "transport: 9 is none of tcp, rdma, automatic"},
    {"device_with_a_line", [](Options& o) { o.rdma_device = "mlx5\n0"; },
     "rdma_device: \"mlx5\\x0a0\" is no device's name"},
    {"device_too_long", [](Options& o) { o.rdma_device.assign(64, 'x'); }, "rdma_device: \"xxxxxxxx"},
    {"rdma_port_too_high", [](Options& o) { o.rdma_port = 256; }, "rdma_port: 256 is not in 0 to 255"},
    {"gid_index_too_low", [](Options& o) { o.rdma_gid_index = -2; }, "rdma_gid_index: -2 is not in -1 to 255"},
    {"gid_index_too_high", [](Options& o) { o.rdma_gid_index = 256; }, "rdma_gid_index: 256 is not in -1 to 255"},
    {"spin_zero", [](Options& o) { o.spin_us = 0; }, "spin_us: 0 is not in 1 to 10000"},
    {"spin_too_long", [](Options& o) { o.spin_us = 10'001; }, "spin_us: 10001 is not in 1 to 10000"},
};

INSTANTIATE_TEST_SUITE_P(, BadOptions, testing::ValuesIn(kBadOptions),
                         [](const auto& case_of) { return std::string(case_of.param.name); });

TEST(Options, values_on_every_bound_pass) {
    const std::function<void(Options&)> changes[] = {
        [](Options& o) { o.cluster_id = 1; },
        [](Options& o) { o.cluster_id = ~std::uint64_t{0}; },
        [](Options& o) { o.id = o.members[0].id = ReplicaId{255}; },
        [](Options& o) { o.members[0].address = "a:1"; },
        [](Options& o) { o.members[0].address = "a:65535"; },
        [](Options& o) { o.members[0].priority = ~std::uint32_t{0}; },
        [](Options& o) { o.ring_bytes = kMinRingBytes; },
        [](Options& o) { o.ring_bytes = kMaxRingBytes; },
        [](Options& o) { o.election_timeout_ms = 10, o.heartbeat_ms = 2; },
        [](Options& o) { o.election_timeout_ms = 60'000, o.heartbeat_ms = 15'000; },
        [](Options& o) { o.heartbeat_ms = 1; },
        [](Options& o) { o.heartbeat_ms = 62; },
        [](Options& o) { o.max_queued_proposals = 1; },
        [](Options& o) { o.max_queued_proposals = 1u << 20; },
        [](Options& o) { o.max_queued_bytes = 1; },
        [](Options& o) { o.max_queued_bytes = std::uint64_t{1} << 32; },
        [](Options& o) { o.polling = Polling::spin; },
        [](Options& o) { o.spin_us = 1; },
        [](Options& o) { o.spin_us = 10'000; },
    };
    for (const auto& change : changes) {
        Options options = good_options();
        change(options);
        const Result<void> result = options.check();
        EXPECT_TRUE(result.ok()) << result.error().message();
    }
}

TEST(Options, largest_command_is_bounded_by_ring_and_queue) {
    Options options = good_options();
    options.ring_bytes = std::uint64_t{1} << 20;
    EXPECT_EQ(options.max_command_bytes(), (std::uint64_t{1} << 18) - 48);
    options.max_queued_bytes = 1000;
    EXPECT_EQ(options.max_command_bytes(), 1000u);
}

// -- Files -----------------------------------------------------------------------------------------------------------

TEST(ConfigFile, every_key_reaches_its_option) {
    const Result<Options> result = parse_config(kGoodText, "a.textproto");
    ASSERT_TRUE(result.ok()) << result.error().message();
    const Options& options = result.value();
    EXPECT_EQ(options.cluster_id, 4711u);
    EXPECT_EQ(options.id, ReplicaId{1});
    ASSERT_EQ(options.members.size(), 2u);
    EXPECT_EQ(options.members[0].id, ReplicaId{1});
    EXPECT_EQ(options.members[0].address, "127.0.0.1:7101");
    EXPECT_EQ(options.members[0].client_address, "127.0.0.1:7201");
    EXPECT_EQ(options.members[0].priority, 5u);
    EXPECT_EQ(options.members[1].id, ReplicaId{2});
    EXPECT_EQ(options.members[1].client_address, "");
    EXPECT_EQ(options.members[1].priority, 0u);
    EXPECT_EQ(options.data_folder, "data");
    EXPECT_TRUE(options.form);
    EXPECT_EQ(options.ring_bytes, 1048576u);
    EXPECT_EQ(options.election_timeout_ms, 100u);
    EXPECT_EQ(options.heartbeat_ms, 20u);
    EXPECT_EQ(options.max_queued_proposals, 7u);
    EXPECT_EQ(options.max_queued_bytes, 8u);
    EXPECT_EQ(options.polling, Polling::adaptive);
    EXPECT_EQ(options.spin_us, 9u);
    EXPECT_EQ(options.transport, Transport::rdma);
    EXPECT_EQ(options.rdma_device, "mlx5_0");
    EXPECT_EQ(options.rdma_port, 2u);
    EXPECT_EQ(options.rdma_gid_index, 3);
}

struct BadText {
    const char* name;
    std::string text;
    const char* message;
};

void PrintTo(const BadText& bad, std::ostream* out) { *out << bad.name; }

class BadTexts : public testing::TestWithParam<BadText> {};

TEST_P(BadTexts, are_refused_with_place_key_value_and_range) {
    EXPECT_THAT(error_of(GetParam().text), StartsWith(GetParam().message));
}

const BadText kBadTexts[] = {
    {"empty", "", "a.textproto: cluster_id: is missing or 0"},
    {"misspelled_key", text_with("ring_bytes", "rign_bytes"),
     "a.textproto:10:1: unknown key: \"rign_bytes\"; did you mean \"ring_bytes\"? Allowed: cluster_id, id, members, "},
    {"unheard_of_key", text_with("ring_bytes", "compression"),
     "a.textproto:10:1: unknown key: \"compression\"; Allowed: cluster_id, id, "},
    {"misspelled_member_key", text_with("    address", "    adress"),
     "a.textproto:6:5: unknown key in members: \"adress\"; did you mean \"address\"? Allowed: id, address, "},
    {"misspelled_value", text_with("adaptive", "adaptiv"),
     "a.textproto:15:10: polling: unknown value \"adaptiv\"; did you mean \"adaptive\"? Allowed: blocking, "},
    {"value_as_unknown_number", text_with("adaptive", "3"), "a.textproto:15:10: polling: unknown value \"3\"; "},
    {"key_given_twice", text_with("spin_us: 9", "spin_us: 9\nspin_us: 10"),
     "a.textproto:17:8: spin_us: is given twice"},
    {"word_for_a_number", text_with("heartbeat_ms: 20", "heartbeat_ms: fast"),
     "a.textproto:12:15: heartbeat_ms: Expected integer, got: fast; allowed: 1 to 15000, at most a quarter of "
     "election_timeout_ms"},
    {"negative_number", text_with("heartbeat_ms: 20", "heartbeat_ms: -20"),
     "a.textproto:12:15: heartbeat_ms: Expected integer, got: -; allowed: 1 to 15000"},
    {"fraction", text_with("heartbeat_ms: 20", "heartbeat_ms: 2.5"),
     "a.textproto:12:15: heartbeat_ms: Expected integer, got: 2.5; allowed: 1 to 15000"},
    {"number_past_32_bits", text_with("heartbeat_ms: 20", "heartbeat_ms: 5000000000"),
     "a.textproto:12:15: heartbeat_ms: Integer out of range (5000000000); allowed: 1 to 15000"},
    {"number_past_64_bits", text_with("ring_bytes: 1048576", "ring_bytes: 99999999999999999999"),
     "a.textproto:10:13: ring_bytes: Integer out of range (99999999999999999999); allowed: 1048576 to 2147483648"},
    {"number_for_text", text_with("\"data\"", "7"), "a.textproto:8:14: data_folder: Expected string, got: 7; allowed: "
                                                   "text in double quotes"},
    {"word_for_a_bool", text_with("true", "yes"),
     "a.textproto:9:7: form: unknown value \"yes\"; Allowed: true or false"},
    {"open_quote", text_with("\"data\"", "\"data"), "a.textproto:8:19: data_folder: "},
    {"open_brace", text_with("7102\"\n}", "7102\"\n"), "a.textproto:8:1: unknown key in members: \"data_folder\"; "},
    {"no_value", text_with("id: 1\n", "id:\n"),
     "a.textproto:3:1: id: Expected integer, got: members; allowed: 1 to 255"},
    {"after_a_tab", text_with("spin_us: 9", "spin_us:\tx"), "a.textproto:16:17: spin_us: Expected integer, got: x; "},
    {"unknown_after_a_tab", text_with("spin_us: 9", "\tspim_us: 9"), "a.textproto:16:9: unknown key: \"spim_us\"; "},
    {"wide_id", text_with("id: 1\n", "id: 257\n"), "a.textproto:2:1: id: 257 is not in 1 to 255"},
    {"wide_member_id", text_with("id: 2\n", "id: 258\n"), "a.textproto:5:5: members[1].id: 258 is not in 1 to 255"},
    {"bound_of_a_key", text_with("spin_us: 9", "spin_us: 0"), "a.textproto:16:1: spin_us: 0 is not in 1 to 10000"},
    {"bound_of_a_member_key", text_with("127.0.0.1:7102", "localhost"),
     "a.textproto:6:5: members[1].address: \"localhost\" has no port"},
    {"missing_member_key", text_with("    address: \"127.0.0.1:7102\"\n", ""),
     "a.textproto:4:1: members[1].address: is missing"},
    {"missing_key", text_with("data_folder: \"data\"\n", ""), "a.textproto: data_folder: is missing"},
    {"other_format", "{\"cluster_id\": 5}", "a.textproto:1:1: "},
    {"deep_nesting", "members { members { members {", "a.textproto:1:11: unknown key in members: \"members\"; "},
    {"binary", std::string("\0\x01\xff\xfe{", 5), "a.textproto:1:1: "},
    {"too_long", std::string(kMaxConfigBytes + 1, ' '), "a.textproto: is longer than 1048576 bytes"},
};

INSTANTIATE_TEST_SUITE_P(, BadTexts, testing::ValuesIn(kBadTexts),
                         [](const auto& case_of) { return std::string(case_of.param.name); });

class ConfigOnDisk : public testing::Test {
 protected:
    ConfigOnDisk() : folder_(testing::TempDir() + "lockstep-config-" + std::to_string(getpid())) {
        std::filesystem::create_directories(folder_);
    }
    ~ConfigOnDisk() override { std::filesystem::remove_all(folder_); }
    const std::string folder_;
};

TEST_F(ConfigOnDisk, file_is_read) {
    const std::string path = folder_ + "/a.textproto";
    std::ofstream(path) << kGoodText;
    const Result<Options> result = Options::from_file(path);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(result.value().spin_us, 9u);
}

TEST_F(ConfigOnDisk, missing_file_is_named) {
    const Result<Options> result = Options::from_file(folder_ + "/none.textproto");
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message(), HasSubstr("none.textproto\": No such file or directory"));
}

TEST_F(ConfigOnDisk, folder_is_no_config) {
    const Result<Options> result = Options::from_file(folder_);
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message(), HasSubstr("Is a directory"));
}

TEST_F(ConfigOnDisk, endless_file_is_cut_off) {
    const Result<Options> result = Options::from_file("/dev/zero");
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message(), HasSubstr("is longer than"));
}

// -- The files in configs/ -------------------------------------------------------------------------------------------

std::string config_path(const std::string& name) { return LOCKSTEP_SOURCE_FOLDER "/configs/" + name; }

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(Configs, sample_names_every_key) {
    const std::string sample = read_file(config_path("replica.sample.textproto"));
    for (const auto* type : {proto::Config::descriptor(), proto::Member::descriptor()}) {
        for (int i = 0; i < type->field_count(); ++i) {
            const std::string& key = type->field(i)->name();
            const char* behind = key == "members" ? " {" : ": ";
            const std::string indent = type == proto::Member::descriptor() ? "\n    " : "\n";
            EXPECT_THAT(sample, HasSubstr(indent + key + behind));
        }
    }
}

TEST(Configs, sample_shows_the_defaults_of_options) {
    const Result<Options> result = Options::from_file(config_path("replica.sample.textproto"));
    ASSERT_TRUE(result.ok()) << result.error().message();
    const Options& sample = result.value();
    const Options defaults;
    EXPECT_EQ(sample.form, defaults.form);
    EXPECT_EQ(sample.ring_bytes, defaults.ring_bytes);
    EXPECT_EQ(sample.election_timeout_ms, defaults.election_timeout_ms);
    EXPECT_EQ(sample.heartbeat_ms, defaults.heartbeat_ms);
    EXPECT_EQ(sample.max_queued_proposals, defaults.max_queued_proposals);
    EXPECT_EQ(sample.max_queued_bytes, defaults.max_queued_bytes);
    EXPECT_EQ(sample.polling, defaults.polling);
    EXPECT_EQ(sample.spin_us, defaults.spin_us);
    EXPECT_EQ(sample.durability, defaults.durability);
    EXPECT_EQ(defaults.durability, Durability::durable);
    EXPECT_EQ(sample.transport, defaults.transport);
    EXPECT_EQ(sample.rdma_device, defaults.rdma_device);
    EXPECT_EQ(sample.rdma_port, defaults.rdma_port);
    EXPECT_EQ(sample.rdma_gid_index, defaults.rdma_gid_index);
    for (const Member& member : sample.members) EXPECT_EQ(member.priority, Member{}.priority);
}

TEST(Configs, three_replicas_agree_on_the_cluster) {
    std::vector<Options> all;
    std::set<std::string> folders;
    for (std::uint8_t id = 1; id <= 3; ++id) {
        const Result<Options> result = Options::from_file(config_path("replica" + std::to_string(id) + ".textproto"));
        ASSERT_TRUE(result.ok()) << result.error().message();
        all.push_back(result.value());
        folders.insert(result.value().data_folder);
        EXPECT_EQ(all.back().id, ReplicaId{id});
        EXPECT_EQ(all.back().cluster_id, all.front().cluster_id);
        EXPECT_EQ(all.back().ring_bytes, all.front().ring_bytes);
        ASSERT_EQ(all.back().members.size(), 3u);
        for (std::size_t at = 0; at < 3; ++at) {
            EXPECT_EQ(all.back().members[at].address, all.front().members[at].address);
            EXPECT_EQ(all.back().members[at].client_address, all.front().members[at].client_address);
            EXPECT_NE(all.back().members[at].client_address, "");
        }
    }
    EXPECT_EQ(folders.size(), 3u);
}

}  // namespace
}  // namespace lockstep
