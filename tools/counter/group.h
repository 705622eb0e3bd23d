// A group: commands on data, from one client, in the bytes of one log entry. docs/counter.md describes the format.
#pragma once

#include "tools/counter/command.h"
#include "tools/counter/resp.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::counter {

inline constexpr std::uint8_t kGroupVersion = 1;
inline constexpr std::size_t kGroupHeaderBytes = 2;

// SET's options, as bits.
inline constexpr std::uint8_t kSetIfMissing = 1;
inline constexpr std::uint8_t kSetIfPresent = 2;
inline constexpr std::uint8_t kSetReturnsOld = 4;

// Appends to a string that is kept from group to group. Keys and values are shorter than 2^31 bytes.
class GroupWriter {
 public:
    explicit GroupWriter(std::string& bytes) : bytes_(bytes) {}
    // Starts a new group.
    void begin(Resp resp);
    // INCR, DECR, GET.
    void add(CommandId id, std::string_view key);
    // INCRBY, DECRBY.
    void add(CommandId id, std::string_view key, std::int64_t by);
    void add_set(std::uint8_t flags, std::string_view key, std::string_view value);
    // MGET, DEL, EXISTS.
    void add(CommandId id, std::span<const std::string_view> keys);
    void add_dbsize();

 private:
    void put_varint(std::uint64_t value);
    void put_text(std::string_view text);
    std::string& bytes_;
};

// Reads variable-length text fields; whole or not at all.
class FieldReader {
 public:
    explicit FieldReader(std::string_view bytes) : left_(bytes) {}
    bool empty() const { return left_.empty(); }
    std::string_view left() const { return left_; }
    bool take_byte(std::uint8_t& value);
    bool take_varint(std::uint64_t& value);
    bool take_int64(std::int64_t& value);
    bool take_text(std::string_view& text);

 private:
    std::string_view left_;
};

// One command of a group. What its id does not use is left as it was.
struct Operation {
    CommandId id = CommandId::get;
    std::uint8_t flags = 0;
    std::int64_t by = 0;
    std::string_view key;
    std::string_view value;
    std::uint64_t key_count = 0;
    FieldReader keys{{}};    // `key_count` texts, checked already
};

// Takes a group apart. The bytes may be anything: what is malformed is found before any of that command is shown.
class GroupReader {
 public:
    // `bytes` must outlive the reader and what it shows.
    explicit GroupReader(std::string_view bytes);
    // False for a version that is not known here; there are no commands then.
    bool known() const { return known_; }
    Resp resp() const { return resp_; }
    // False at the end, and where the bytes go wrong.
    bool next(Operation& operation);
    // After `next` has said false: whether the group ended as it should.
    bool whole() const { return known_ && !malformed_; }

 private:
    bool take(Operation& operation);
    bool take_keys(Operation& operation);
    FieldReader fields_;
    Resp resp_ = Resp::v2;
    bool known_ = false;
    bool malformed_ = false;
};

// What a group is, seen from outside.
struct GroupSummary {
    bool whole = false;
    bool writes = false;
    std::size_t commands = 0;
};
GroupSummary summarize(std::string_view group);

}  // namespace lockstep::counter
