#include "consensus/replica/config_file.h"

#include "consensus/replica/config_error.h"
#include "consensus/replica/options_check.h"
#include "proto/config.pb.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

static_assert(static_cast<int>(Polling::blocking) == static_cast<int>(proto::blocking));
static_assert(static_cast<int>(Polling::adaptive) == static_cast<int>(proto::adaptive));
static_assert(static_cast<int>(Polling::spin) == static_cast<int>(proto::spin));

static_assert(static_cast<int>(Durability::memory) == static_cast<int>(proto::memory));
static_assert(static_cast<int>(Durability::durable) == static_cast<int>(proto::durable));
static_assert(static_cast<int>(Durability::persist_async) == static_cast<int>(proto::persist_async));

static_assert(static_cast<int>(Transport::tcp) == static_cast<int>(proto::tcp));
static_assert(static_cast<int>(Transport::rdma) == static_cast<int>(proto::rdma));
static_assert(static_cast<int>(Transport::automatic) == static_cast<int>(proto::auto_));

// Nesting in a config is two deep; a hostile file is stopped long before the stack ends.
constexpr int kMaxNesting = 8;

// Keeps the first error: what follows it is most often its echo.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
    void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
        if (message_) return;
        place_ = {line, column};
        message_ = message;
    }
    const std::optional<std::string>& message() const { return message_; }
    Place place() const { return place_; }

 private:
    std::optional<std::string> message_;
    Place place_;
};

Place place_of(const TextFormat::ParseInfoTree& tree, const Descriptor& type, const std::string& key) {
    const FieldDescriptor* field = type.FindFieldByName(key);
    if (field == nullptr || field->is_repeated()) return {};
    const TextFormat::ParseLocation location = tree.GetLocation(field, -1);
    return {location.line, location.column};
}

// Where in the text the problem's key stands; nowhere if it is missing.
Place place_of(const TextFormat::ParseInfoTree& tree, const OptionProblem& problem) {
    const Descriptor& config = *proto::Config::descriptor();
    if (!problem.member) return place_of(tree, config, problem.key);
    const FieldDescriptor* members = config.FindFieldByName("members");
    const int at = static_cast<int>(*problem.member);
    const TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(members, at);
    const Place key = nested ? place_of(*nested, *proto::Member::descriptor(), problem.key) : Place{};
    if (key.line >= 0) return key;
    const TextFormat::ParseLocation member = tree.GetLocation(members, at);
    return {member.line, member.column};
}

// Ids are narrower in the protocol than in the file.
std::optional<OptionProblem> find_wide_id(const proto::Config& config) {
    constexpr std::uint32_t kMaxId = 255;
    const auto problem = [](std::uint32_t id, std::optional<std::size_t> member) {
        return OptionProblem{"id", member, std::to_string(id) + " is not in " + allowed_range("id")};
    };
    if (config.id() > kMaxId) return problem(config.id(), {});
    for (int i = 0; i < config.members_size(); ++i) {
        const std::uint32_t id = config.members(i).id();
        if (id > kMaxId) return problem(id, static_cast<std::size_t>(i));
    }
    return {};
}

// Keys that the file leaves out keep the defaults of Options.
Options to_options(const proto::Config& config) {
    Options options;
    options.cluster_id = config.cluster_id();
    options.id = ReplicaId{static_cast<std::uint8_t>(config.id())};
    for (const proto::Member& member : config.members()) {
        options.members.push_back({ReplicaId{static_cast<std::uint8_t>(member.id())}, member.address(),
                                   member.priority(), member.client_address()});
    }
    options.data_folder = config.data_folder();
    options.form = config.form();
    options.join = config.join();
    if (config.has_ring_bytes()) options.ring_bytes = config.ring_bytes();
    if (config.has_election_timeout_ms()) options.election_timeout_ms = config.election_timeout_ms();
    if (config.has_heartbeat_ms()) options.heartbeat_ms = config.heartbeat_ms();
    if (config.has_max_queued_proposals()) options.max_queued_proposals = config.max_queued_proposals();
    if (config.has_max_queued_bytes()) options.max_queued_bytes = config.max_queued_bytes();
    if (config.has_polling()) options.polling = static_cast<Polling>(config.polling());
    if (config.has_spin_us()) options.spin_us = config.spin_us();
    if (config.has_transport()) options.transport = static_cast<Transport>(config.transport());
    options.rdma_device = config.rdma_device();
    if (config.has_durability()) options.durability = static_cast<Durability>(config.durability());
    if (config.has_snapshot_bytes()) options.snapshot_bytes = config.snapshot_bytes();
    if (config.has_snapshot_entries()) options.snapshot_entries = config.snapshot_entries();
    if (config.has_rdma_port()) options.rdma_port = config.rdma_port();
    if (config.has_rdma_gid_index()) options.rdma_gid_index = config.rdma_gid_index();
    return options;
}

}  // namespace

Result<Options> parse_config(std::string_view text, const std::string& name) {
    if (text.size() > kMaxConfigBytes) {
        return Error(name + ": is longer than " + std::to_string(kMaxConfigBytes) + " bytes: this is no config");
    }
    FirstError error;
    TextFormat::ParseInfoTree places;
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&error);
    parser.WriteLocationsTo(&places);
    parser.SetRecursionLimit(kMaxNesting);
    proto::Config config;
    google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
    const bool parsed = parser.Parse(&stream, &config);
    if (error.message()) return Error(explain(text, name, error.place(), *error.message()));
    if (!parsed) return Error(name + ": cannot be read as Protobuf text format");

    std::optional<OptionProblem> problem = find_wide_id(config);
    Options options;
    if (!problem) {
        options = to_options(config);
        problem = find_problem(options);
    }
    if (problem) return Error(at_place(name, place_of(places, *problem)) + ": " + problem->message());
    return options;
}

Result<Options> Options::from_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error("cannot open config " + quoted(path) + ": " + std::strerror(errno));
    std::string text(kMaxConfigBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) return Error("cannot read config " + quoted(path) + ": " + std::strerror(errno));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return parse_config(text, path);
}

}  // namespace lockstep
