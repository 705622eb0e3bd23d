#include "consensus/replica/config_file.h"

#include "consensus/replica/options_check.h"
#include "proto/config.pb.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

static_assert(static_cast<int>(Polling::blocking) == static_cast<int>(proto::blocking));
static_assert(static_cast<int>(Polling::adaptive) == static_cast<int>(proto::adaptive));
static_assert(static_cast<int>(Polling::spin) == static_cast<int>(proto::spin));

// Nesting in a config is two deep; a hostile file is stopped long before the stack ends.
constexpr int kMaxNesting = 8;

// Lines and columns as Protobuf counts them: from 0; -1 is "nowhere".
struct Place {
    int line = -1;
    int column = -1;
};

std::string at_place(const std::string& name, Place place) {
    if (place.line < 0) return name;
    return name + ":" + std::to_string(place.line + 1) + ":" + std::to_string(place.column + 1);
}

// Keeps the first error: what follows it is most often its echo.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
    void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
        if (message_) return;
        place_ = {line, column};
        message_ = message;
    }
    Place place() const { return place_; }
    const std::optional<std::string>& message() const { return message_; }

 private:
    Place place_;
    std::optional<std::string> message_;
};

// How many letters must be changed, added or left out to make one of the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

// "did you mean ...?" if one of the words is near enough, and all that there are.
std::string suggestion(std::string_view given, const std::vector<std::string>& words) {
    constexpr std::size_t kLongestName = 64;
    constexpr std::size_t kFarthest = 3;
    std::string text;
    if (given.size() <= kLongestName) {
        const auto nearer = [given](const std::string& a, const std::string& b) {
            return distance(given, a) < distance(given, b);
        };
        const auto nearest = std::min_element(words.begin(), words.end(), nearer);
        if (distance(given, *nearest) <= kFarthest) text = "did you mean \"" + *nearest + "\"? ";
    }
    return text + "Allowed: " + joined(words);
}

std::vector<std::string> keys_of(const Descriptor& type) {
    std::vector<std::string> names;
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    return names;
}

std::vector<std::string> values_of(const FieldDescriptor& field) {
    std::vector<std::string> names;
    for (int i = 0; i < field.enum_type()->value_count(); ++i) names.push_back(field.enum_type()->value(i)->name());
    return names;
}

// What may stand behind a key.
std::string allowed_values(const FieldDescriptor& field) {
    if (const std::string range = allowed_range(field.name()); !range.empty()) return range;
    switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
        case FieldDescriptor::CPPTYPE_ENUM: return joined(values_of(field));
        case FieldDescriptor::CPPTYPE_STRING: return "text in double quotes";
        case FieldDescriptor::CPPTYPE_MESSAGE: return "{ " + joined(keys_of(*field.message_type())) + " }";
        case FieldDescriptor::CPPTYPE_UINT32: return "0 to 4294967295";
        default: return "0 to 18446744073709551615";
    }
}

const FieldDescriptor* find_key(const std::string& name) {
    const FieldDescriptor* field = proto::Config::descriptor()->FindFieldByName(name);
    return field != nullptr ? field : proto::Member::descriptor()->FindFieldByName(name);
}

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The last word before `place` on its line that is a key: the value that is wrong belongs to it.
const FieldDescriptor* key_before(std::string_view text, Place place) {
    for (int line = 0; line < place.line; ++line) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
    std::string_view rest = text.substr(0, text.find('\n'));
    rest = rest.substr(0, std::min(rest.size(), static_cast<std::size_t>(std::max(place.column, 0))));
    while (!rest.empty()) {
        while (!rest.empty() && !is_name_letter(rest.back())) rest.remove_suffix(1);
        std::size_t start = rest.size();
        while (start > 0 && is_name_letter(rest[start - 1])) --start;
        if (const FieldDescriptor* field = find_key(std::string(rest.substr(start)))) return field;
        rest = rest.substr(0, start);
    }
    return nullptr;
}

// The `count`th piece of a message that stands in double quotes, from 0.
std::string quoted_piece(const std::string& message, int count) {
    std::size_t from = message.find('"');
    for (int i = 0; i < count * 2 && from != std::string::npos; ++i) from = message.find('"', from + 1);
    if (from == std::string::npos) return {};
    const std::size_t to = message.find('"', from + 1);
    return message.substr(from + 1, to == std::string::npos ? to : to - from - 1);
}

// Protobuf's message in our words: the key, and what is allowed.
std::string explain(std::string_view text, const FirstError& error) {
    const std::string& message = *error.message();
    if (message.find("has no field named") != std::string::npos) {
        const std::string given = quoted_piece(message, 1);
        const Descriptor& type = message.find("lockstep.proto.Member") != std::string::npos
                                     ? *proto::Member::descriptor() : *proto::Config::descriptor();
        const std::string where = &type == proto::Member::descriptor() ? "unknown key in members: " : "unknown key: ";
        return where + quoted(given) + "; " + suggestion(given, keys_of(type));
    }
    const FieldDescriptor* key = key_before(text, error.place());
    if (message.find("Unknown enumeration value") != std::string::npos && key != nullptr && key->enum_type()) {
        const std::string given = quoted_piece(message, 0);
        return key->name() + ": unknown value " + quoted(given) + "; " + suggestion(given, values_of(*key));
    }
    if (message.find("specified multiple times") != std::string::npos) {
        return quoted_piece(message, 0) + ": is given twice; leave one out";
    }
    if (key == nullptr) return message;
    return key->name() + ": " + message + "; allowed: " + allowed_values(*key);
}

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
    if (config.has_ring_bytes()) options.ring_bytes = config.ring_bytes();
    if (config.has_election_timeout_ms()) options.election_timeout_ms = config.election_timeout_ms();
    if (config.has_heartbeat_ms()) options.heartbeat_ms = config.heartbeat_ms();
    if (config.has_max_queued_proposals()) options.max_queued_proposals = config.max_queued_proposals();
    if (config.has_max_queued_bytes()) options.max_queued_bytes = config.max_queued_bytes();
    if (config.has_polling()) options.polling = static_cast<Polling>(config.polling());
    if (config.has_spin_us()) options.spin_us = config.spin_us();
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
    if (error.message()) return Error(at_place(name, error.place()) + ": " + explain(text, error));
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
