#include "tools/counter/resp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::counter {
namespace {

using Step = RequestParser::Step;
using Commands = std::vector<std::vector<std::string>>;

// What a parser makes of a stream that arrives in pieces.
struct Parsed {
    Commands commands;
    std::string error;
    std::size_t left = 0;
};

// `ends` are the offsets at which pieces end. Each time the unread bytes are copied elsewhere, as a real buffer may do.
Parsed parse(std::string_view stream, const std::vector<std::size_t>& ends, const Limits& limits = {}) {
    Parsed parsed;
    RequestParser parser(limits);
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        while (true) {
            const std::vector<char> unread(stream.begin() + static_cast<std::ptrdiff_t>(begin),
                                           stream.begin() + static_cast<std::ptrdiff_t>(end));
            const Step step = parser.next({unread.data(), unread.size()});
            if (step == Step::failed) {
                parsed.error = parser.error();
                return parsed;
            }
            if (step == Step::incomplete) break;
            if (step == Step::command) {
                auto& command = parsed.commands.emplace_back();
                for (const auto arg : parser.args()) command.emplace_back(arg);
            }
            begin += parser.consumed();
        }
    }
    parsed.left = stream.size() - begin;
    return parsed;
}

Parsed parse_whole(std::string_view stream, const Limits& limits = {}) {
    return parse(stream, {stream.size()}, limits);
}

const std::string kMixed =
    "*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n"
    "PING\r\n"
    "\r\n"
    "*0\r\n"
    "*-1\r\n"
    "  set \"a b\" 'it\\'s' \"\\x41\\n\"  \n"
    "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$10\r\nwith\r\n$5\r\n\r\n"
    "*1\r\n$4\r\nQUIT\r\n";
const Commands kMixedCommands = {{"INCR", "x"},
                                 {"PING"},
                                 {"set", "a b", "it's", "A\n"},
                                 {"SET", "", "with\r\n$5\r\n"},
                                 {"QUIT"}};

TEST(RequestParser, stream_split_at_any_two_places_gives_the_same_commands) {
    for (std::size_t first = 0; first <= kMixed.size(); ++first) {
        for (std::size_t second = first; second <= kMixed.size(); ++second) {
            const Parsed parsed = parse(kMixed, {first, second, kMixed.size()});
            ASSERT_EQ(parsed.error, "") << "split at " << first << " and " << second;
            ASSERT_EQ(parsed.commands, kMixedCommands) << "split at " << first << " and " << second;
            ASSERT_EQ(parsed.left, 0U);
        }
    }
}

TEST(RequestParser, single_bytes_give_the_same_commands) {
    std::vector<std::size_t> ends;
    for (std::size_t end = 1; end <= kMixed.size(); ++end) ends.push_back(end);
    EXPECT_EQ(parse(kMixed, ends).commands, kMixedCommands);
}

TEST(RequestParser, any_prefix_is_incomplete_and_no_error) {
    for (std::size_t end = 0; end < kMixed.size(); ++end) {
        const Parsed parsed = parse(kMixed.substr(0, end), {end});
        EXPECT_EQ(parsed.error, "") << "cut at " << end;
        EXPECT_LT(parsed.commands.size(), kMixedCommands.size());
    }
}

TEST(RequestParser, errors_are_those_of_redis) {
    EXPECT_EQ(parse_whole("*x\r\n").error, "Protocol error: invalid multibulk length");
    EXPECT_EQ(parse_whole("*\r\n").error, "Protocol error: invalid multibulk length");
    EXPECT_EQ(parse_whole("*99999999999\r\n").error, "Protocol error: invalid multibulk length");
    EXPECT_EQ(parse_whole("*1\r\n+PING\r\n").error, "Protocol error: expected '$', got '+'");
    EXPECT_EQ(parse_whole("*1\r\n\r\n").error, "Protocol error: expected '$', got ' '");
    EXPECT_EQ(parse_whole("*1\r\n$x\r\n").error, "Protocol error: invalid bulk length");
    EXPECT_EQ(parse_whole("*1\r\n$-1\r\n").error, "Protocol error: invalid bulk length");
    EXPECT_EQ(parse_whole("*1\r\n$04\r\n").error, "Protocol error: invalid bulk length");
    EXPECT_EQ(parse_whole("SET \"x\r\n").error, "Protocol error: unbalanced quotes in request");
    EXPECT_EQ(parse_whole("SET \"x\"y\r\n").error, "Protocol error: unbalanced quotes in request");
    EXPECT_EQ(parse_whole(std::string(kMaxLineBytes + 1, 'x')).error, "Protocol error: too big inline request");
    EXPECT_EQ(parse_whole("*" + std::string(kMaxLineBytes + 1, '1')).error,
              "Protocol error: too big mbulk count string");
    EXPECT_EQ(parse_whole("*1\r\n$" + std::string(kMaxLineBytes + 1, '1')).error,
              "Protocol error: too big bulk count string");
}

TEST(RequestParser, error_is_final) {
    const Limits limits;
    RequestParser parser(limits);
    EXPECT_EQ(parser.next("*x\r\n"), Step::failed);
    EXPECT_EQ(parser.next("PING\r\n"), Step::failed);
}

TEST(RequestParser, limits_hold) {
    Limits limits;
    limits.args = 3;
    limits.query_bytes = 100;
    EXPECT_EQ(parse_whole("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", limits).commands.size(), 1U);
    EXPECT_EQ(parse_whole("*4\r\n", limits).error, "Protocol error: invalid multibulk length");
    EXPECT_EQ(parse_whole("a b c d\r\n", limits).error, "Protocol error: invalid multibulk length");
    EXPECT_EQ(parse_whole("*1\r\n$101\r\n", limits).error, "Protocol error: invalid bulk length");
    EXPECT_EQ(parse_whole("*2\r\n$50\r\n" + std::string(50, 'x') + "\r\n$50\r\n", limits).error,
              "Protocol error: command is larger than 100 bytes");
}

TEST(ParseInteger, takes_what_redis_prints_and_nothing_else) {
    EXPECT_EQ(parse_integer("0"), 0);
    EXPECT_EQ(parse_integer("-7"), -7);
    EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    for (const char* text : {"", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1x", "0x1", "9223372036854775808",
                             "-9223372036854775809", "99999999999999999999999", "1.0", "--1"}) {
        EXPECT_EQ(parse_integer(text), std::nullopt) << text;
    }
}

RC_GTEST_PROP(ParseInteger, takes_any_number_that_is_printed, (std::int64_t value)) {
    RC_ASSERT(parse_integer(std::to_string(value)) == std::optional(value));
}

RC_GTEST_PROP(RequestParser, takes_any_bytes_in_bulk_strings_in_any_pieces, (const Commands& given)) {
    std::string stream;
    Commands expected;
    for (const auto& command : given) {
        append_array(stream, command.size());
        for (const auto& arg : command) append_bulk(stream, arg);
        if (!command.empty()) expected.push_back(command);
    }
    std::vector<std::size_t> ends;
    for (std::size_t end = 0; end < stream.size(); end += *rc::gen::inRange<std::size_t>(1, 20)) ends.push_back(end);
    ends.push_back(stream.size());
    RC_ASSERT(parse(stream, ends).commands == expected);
}

RC_GTEST_PROP(RequestParser, takes_any_bytes_without_reading_past_them, (const std::vector<char>& bytes)) {
    const std::string_view stream(bytes.data(), bytes.size());
    const Parsed parsed = parse(stream, {stream.size() / 2, stream.size()});
    RC_ASSERT(parsed.left <= stream.size());
}

TEST(ReplyBytes, finds_the_end_of_every_kind) {
    for (const std::string reply :
         {"+OK\r\n", "-ERR no\r\n", ":12\r\n", "$3\r\na\r\n\r\n", "$-1\r\n", "_\r\n", "*-1\r\n", "*0\r\n",
          "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "%1\r\n+a\r\n%1\r\n+b\r\n:1\r\n", "=7\r\ntxt:abc\r\n", "~1\r\n+x\r\n"}) {
        EXPECT_EQ(reply_bytes(reply), reply.size()) << reply;
        EXPECT_EQ(reply_bytes(reply + "+more\r\n"), reply.size()) << reply;
        for (std::size_t cut = 0; cut < reply.size(); ++cut) EXPECT_EQ(reply_bytes(reply.substr(0, cut)), 0U) << reply;
    }
    EXPECT_EQ(reply_bytes("hello\r\n"), std::nullopt);
    EXPECT_EQ(reply_bytes("$x\r\n"), std::nullopt);
    EXPECT_EQ(reply_bytes("\r\n"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::counter
