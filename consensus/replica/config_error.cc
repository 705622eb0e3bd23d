#include "consensus/replica/config_error.h"

#include "consensus/replica/options_check.h"
#include "proto/config.pb.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kTabWidth = 8;

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

int after(int column, char c) { return c == '\t' ? column + kTabWidth - column % kTabWidth : column + 1; }

std::size_t offset_of(std::string_view text, Place place) {
    std::size_t offset = 0;
    for (int line = 0; line < place.line && offset < text.size(); ++line) {
        const std::size_t end = text.find('\n', offset);
        offset = end == std::string_view::npos ? text.size() : end + 1;
    }
    int column = 0;
    while (offset < text.size() && column < place.column && text[offset] != '\n') {
        column = after(column, text[offset++]);
    }
    return offset;
}

Place place_of(std::string_view text, std::size_t offset) {
    Place place{0, 0};
    for (const char c : text.substr(0, offset)) {
        place = c == '\n' ? Place{place.line + 1, 0} : Place{place.line, after(place.column, c)};
    }
    return place;
}

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word that ends `text`, without what is between the two; moves `text` before it.
std::string_view take_last_word(std::string_view& text) {
    while (!text.empty() && !is_name_letter(text.back())) text.remove_suffix(1);
    std::size_t start = text.size();
    while (start > 0 && is_name_letter(text[start - 1])) --start;
    const std::string_view word = text.substr(start);
    text = text.substr(0, start);
    return word;
}

const FieldDescriptor* find_key(std::string_view word) {
    const std::string name(word);
    const FieldDescriptor* field = proto::Config::descriptor()->FindFieldByName(name);
    return field != nullptr ? field : proto::Member::descriptor()->FindFieldByName(name);
}

// The key that the value at `offset` belongs to: the last on the same line before it, or the word just before it.
const FieldDescriptor* key_before(std::string_view text, std::size_t offset) {
    std::string_view before = text.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') + 1;  // 0 if there is none
    std::string_view line = before.substr(line_start);
    while (!line.empty()) {
        if (const FieldDescriptor* field = find_key(take_last_word(line))) return field;
    }
    return find_key(take_last_word(before));
}

// The `count`th piece of a message that stands in double quotes, from 0.
std::string quoted_piece(const std::string& message, int count) {
    std::size_t from = message.find('"');
    for (int i = 0; i < count * 2 && from != std::string::npos; ++i) from = message.find('"', from + 1);
    if (from == std::string::npos) return {};
    const std::size_t to = message.find('"', from + 1);
    return message.substr(from + 1, to == std::string::npos ? to : to - from - 1);
}

// Some errors are found one token late: this is where the culprit itself stands.
std::size_t step_back(std::string_view text, std::size_t offset, std::string_view culprit) {
    if (culprit.empty() || offset == 0) return offset;
    const std::size_t found = text.rfind(culprit, offset - 1);
    return found == std::string_view::npos ? offset : found;
}

struct Explained {
    std::size_t offset;
    std::string text;
};

Explained explain_unknown_key(std::string_view text, std::size_t offset, const std::string& message) {
    const std::string given = quoted_piece(message, 1);
    const bool in_member = quoted_piece(message, 0) == proto::Member::descriptor()->full_name();
    const Descriptor& type = in_member ? *proto::Member::descriptor() : *proto::Config::descriptor();
    return {step_back(text, offset, given), std::string("unknown key") + (in_member ? " in members: " : ": ") +
                                                quoted(given) + "; " + suggestion(given, keys_of(type))};
}

Explained explain_unknown_value(std::string_view text, std::size_t offset, const std::string& given,
                                const FieldDescriptor& key) {
    const std::string allowed = key.enum_type() != nullptr ? suggestion(given, values_of(key))
                                                           : "Allowed: " + allowed_values(key);
    return {step_back(text, offset, given), key.name() + ": unknown value " + quoted(given) + "; " + allowed};
}

Explained explain(std::string_view text, std::size_t offset, const std::string& message) {
    const auto says = [&message](const char* words) { return message.find(words) != std::string::npos; };
    if (says("has no field named")) return explain_unknown_key(text, offset, message);
    if (says("Unknown enumeration value")) {
        const FieldDescriptor* key = find_key(quoted_piece(message, 1));
        if (key != nullptr) return explain_unknown_value(text, offset, quoted_piece(message, 0), *key);
    }
    if (says("Invalid value for boolean field")) {
        const FieldDescriptor* key = find_key(quoted_piece(message, 0));
        if (key != nullptr) return explain_unknown_value(text, offset, quoted_piece(message, 1), *key);
    }
    if (says("specified multiple times")) return {offset, quoted_piece(message, 0) + ": is given twice; leave one out"};
    const FieldDescriptor* key = key_before(text, offset);
    if (key == nullptr) return {offset, message};
    return {offset, key->name() + ": " + message + "; allowed: " + allowed_values(*key)};
}

}  // namespace

std::string at_place(const std::string& name, Place place) {
    if (place.line < 0) return name;
    return name + ":" + std::to_string(place.line + 1) + ":" + std::to_string(place.column + 1);
}

std::string explain(std::string_view text, const std::string& name, Place place, const std::string& message) {
    const Explained explained = explain(text, offset_of(text, place), message);
    return at_place(name, place_of(text, explained.offset)) + ": " + explained.text;
}

}  // namespace lockstep
