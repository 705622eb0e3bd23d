// Redis' wire protocol (RESP): requests in, replies out.
// Source: "RESP protocol spec", redis.io; where that is silent, the behaviour of redis-server 7.0.
#pragma once

#include "tools/counter/limits.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::counter {

// The version that a client has asked for with HELLO.
enum class Resp : std::uint8_t { v2 = 2, v3 = 3 };

// Takes a stream of requests apart: arrays of bulk strings, and inline commands. Work done on a command that has not
// arrived whole is not done again when more of it comes. Used by one thread at a time.
class RequestParser {
 public:
    enum class Step : std::uint8_t {
        command,     // `args` holds one; at least one argument
        nothing,     // an empty request went by: skip `consumed` bytes and go on
        incomplete,  // the rest has not arrived
        failed,      // not RESP, or past a limit: answer `error` and close. Final.
    };

    // `limits` must outlive the parser.
    explicit RequestParser(const Limits& limits) : limits_(limits) {}

    // Looks at `unread`, which starts at the first byte that no earlier `command` or `nothing` has consumed; its bytes
    // may have moved since the last call.
    Step next(std::string_view unread);
    // Bytes of the request that `next` has just returned.
    std::size_t consumed() const { return consumed_; }
    // Point into the `unread` of that call or into the parser: valid until either changes.
    std::span<const std::string_view> args() const { return args_; }
    // As Redis words it, without the leading "-ERR ".
    const std::string& error() const { return error_; }

 private:
    enum class Kind : std::uint8_t { unknown, array, inline_command };
    struct Slot {
        std::size_t offset;
        std::size_t bytes;
    };
    Step next_array(std::string_view unread);
    Step next_inline(std::string_view unread);
    // Reads "<mark><number>\r\n" at the cursor. `incomplete`, `failed`, or `command` for success.
    Step read_length(std::string_view unread, const char* what, std::int64_t& length);
    Step finish(Step step, std::size_t consumed);
    Step fail(std::string error);

    const Limits& limits_;
    Kind kind_ = Kind::unknown;
    std::size_t cursor_ = 0;           // in `unread`: what is before it has been understood
    std::int64_t args_left_ = -1;      // -1: the array's header is still to be read
    std::int64_t bulk_bytes_ = -1;     // -1: the next argument's header is still to be read
    std::vector<Slot> slots_;
    std::vector<std::string_view> args_;
    std::vector<std::string> inline_args_;
    std::size_t consumed_ = 0;
    std::string error_;
};

// A decimal integer exactly as Redis would print it: no plus sign, leading zero, blank or "-0".
std::optional<std::int64_t> parse_integer(std::string_view text);

// Splits an inline command as redis-cli and redis-server do: quotes, escapes, \xHH. None if a quote is not balanced.
std::optional<std::vector<std::string>> split_inline(std::string_view line);

// Each appends one reply to `out`.
void append_integer(std::string& out, std::int64_t value);
void append_bulk(std::string& out, std::string_view bytes);
void append_simple(std::string& out, std::string_view text);
// `text` starts with its code ("ERR ...") and holds no line break.
void append_error(std::string& out, std::string_view text);
void append_null(std::string& out, Resp resp);
void append_array(std::string& out, std::size_t count);
// The header of `pairs` pairs: a map, or in version 2 an array of twice the length.
void append_map(std::string& out, Resp resp, std::size_t pairs);
// A text for people: a verbatim string, or in version 2 a bulk string.
void append_verbatim(std::string& out, Resp resp, std::string_view text);

// How long the first reply in `bytes` is: 0 if it has not arrived whole, none if `bytes` is no reply.
std::optional<std::size_t> reply_bytes(std::string_view bytes);

}  // namespace lockstep::counter
