#include "tools/counter/group.h"

#include <cstring>

namespace lockstep::counter {

void GroupWriter::begin(Resp resp) {
    bytes_.clear();
    bytes_.push_back(static_cast<char>(kGroupVersion));
    bytes_.push_back(static_cast<char>(resp));
}

void GroupWriter::put_varint(std::uint64_t value) {
    while (value >= 0x80) {
        bytes_.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
}

void GroupWriter::put_text(std::string_view text) {
    put_varint(text.size());
    bytes_.append(text);
}

void GroupWriter::add(CommandId id, std::string_view key) {
    bytes_.push_back(static_cast<char>(id));
    put_text(key);
}

void GroupWriter::add(CommandId id, std::string_view key, std::int64_t by) {
    add(id, key);
    for (int shift = 0; shift < 64; shift += 8) {
        bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(by) >> shift));
    }
}

void GroupWriter::add_set(std::uint8_t flags, std::string_view key, std::string_view value) {
    add(CommandId::set, key);
    bytes_.push_back(static_cast<char>(flags));
    put_text(value);
}

void GroupWriter::add(CommandId id, std::span<const std::string_view> keys) {
    bytes_.push_back(static_cast<char>(id));
    put_varint(keys.size());
    for (const std::string_view key : keys) put_text(key);
}

void GroupWriter::add_dbsize() { bytes_.push_back(static_cast<char>(CommandId::dbsize)); }

bool FieldReader::take_byte(std::uint8_t& value) {
    if (left_.empty()) return false;
    value = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return true;
}

bool FieldReader::take_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        std::uint8_t byte = 0;
        if (!take_byte(byte)) return false;
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool FieldReader::take_int64(std::int64_t& value) {
    if (left_.size() < 8) return false;
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < 8; ++i)
        bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(left_[i])) << (8 * i);
    value = static_cast<std::int64_t>(bits);
    left_.remove_prefix(8);
    return true;
}

bool FieldReader::take_text(std::string_view& text) {
    std::uint64_t bytes = 0;
    if (!take_varint(bytes) || bytes > left_.size()) return false;
    text = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return true;
}

GroupReader::GroupReader(std::string_view bytes) : fields_(bytes) {
    std::uint8_t version = 0;
    std::uint8_t resp = 0;
    known_ = fields_.take_byte(version) && version == kGroupVersion && fields_.take_byte(resp) &&
             (resp == static_cast<std::uint8_t>(Resp::v2) || resp == static_cast<std::uint8_t>(Resp::v3));
    if (known_) resp_ = static_cast<Resp>(resp);
}

bool GroupReader::next(Operation& operation) {
    if (!known_ || malformed_ || fields_.empty()) return false;
    malformed_ = !take(operation);
    return !malformed_;
}

bool GroupReader::take(Operation& operation) {
    std::uint8_t opcode = 0;
    if (!fields_.take_byte(opcode)) return false;
    operation.id = static_cast<CommandId>(opcode);
    switch (operation.id) {
        case CommandId::incr:
        case CommandId::decr:
        case CommandId::get: return fields_.take_text(operation.key);
        case CommandId::incrby:
        case CommandId::decrby: return fields_.take_text(operation.key) && fields_.take_int64(operation.by);
        case CommandId::set:
            return fields_.take_text(operation.key) && fields_.take_byte(operation.flags) &&
                   fields_.take_text(operation.value);
        case CommandId::mget:
        case CommandId::del:
        case CommandId::exists: return take_keys(operation);
        case CommandId::dbsize: return true;
        default: return false;
    }
}

bool GroupReader::take_keys(Operation& operation) {
    if (!fields_.take_varint(operation.key_count)) return false;
    const std::string_view from = fields_.left();
    std::string_view key;
    for (std::uint64_t i = 0; i < operation.key_count; ++i) {
        if (!fields_.take_text(key)) return false;
    }
    operation.keys = FieldReader(from.substr(0, from.size() - fields_.left().size()));
    return true;
}

GroupSummary summarize(std::string_view group) {
    GroupSummary summary;
    GroupReader reader(group);
    for (Operation operation; reader.next(operation); ++summary.commands) {
        if (find_opcode(static_cast<std::uint8_t>(operation.id))->writes) summary.writes = true;
    }
    summary.whole = reader.whole();
    return summary;
}

}  // namespace lockstep::counter
