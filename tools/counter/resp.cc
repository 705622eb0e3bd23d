#include "tools/counter/resp.h"

#include <charconv>
#include <cstring>
#include <limits>

namespace lockstep::counter {

RequestParser::Step RequestParser::next(std::string_view unread) {
    if (!error_.empty()) return Step::failed;
    if (unread.empty()) return Step::incomplete;
    if (kind_ == Kind::unknown) kind_ = unread[0] == '*' ? Kind::array : Kind::inline_command;
    return kind_ == Kind::array ? next_array(unread) : next_inline(unread);
}

RequestParser::Step RequestParser::finish(Step step, std::size_t consumed) {
    consumed_ = consumed;
    kind_ = Kind::unknown;
    cursor_ = 0;
    args_left_ = -1;
    bulk_bytes_ = -1;
    slots_.clear();
    return step;
}

RequestParser::Step RequestParser::fail(std::string error) {
    error_ = std::move(error);
    return Step::failed;
}

RequestParser::Step RequestParser::read_length(std::string_view unread, const char* what, std::int64_t& length) {
    const char* from = unread.data() + cursor_;
    const std::size_t left = unread.size() - cursor_;
    const auto* end = left == 0 ? nullptr : static_cast<const char*>(std::memchr(from, '\r', left));
    if (end == nullptr) {
        if (left > kMaxLineBytes) return fail(std::string("Protocol error: too big ") + what + " count string");
        return Step::incomplete;
    }
    const auto line = static_cast<std::size_t>(end - from);
    if (left < line + 2) return Step::incomplete;
    if (what[0] == 'b' && from[0] != '$') {
        std::string error = "Protocol error: expected '$', got '";
        // As printf's %c into a C string, with line breaks made blanks: a reply is one line.
        if (from[0] != '\0') error.append(1, from[0] == '\r' || from[0] == '\n' ? ' ' : from[0]).append(1, '\'');
        return fail(std::move(error));
    }
    const auto number = line == 0 ? std::nullopt : parse_integer({from + 1, line - 1});
    length = number.value_or(std::numeric_limits<std::int64_t>::max());
    cursor_ += line + 2;
    return Step::command;
}

RequestParser::Step RequestParser::next_array(std::string_view unread) {
    if (args_left_ < 0) {
        const Step step = read_length(unread, "mbulk", args_left_);
        if (step != Step::command) {
            args_left_ = -1;
            return step;
        }
        if (args_left_ > limits_.args) return fail("Protocol error: invalid multibulk length");
        if (args_left_ <= 0) return finish(Step::nothing, cursor_);
    }
    while (args_left_ > 0) {
        if (bulk_bytes_ < 0) {
            const Step step = read_length(unread, "bulk", bulk_bytes_);
            if (step != Step::command) {
                bulk_bytes_ = -1;
                return step;
            }
            if (bulk_bytes_ < 0 || bulk_bytes_ > limits_.query_bytes) {
                return fail("Protocol error: invalid bulk length");
            }
        }
        const auto bytes = static_cast<std::size_t>(bulk_bytes_);
        if (cursor_ + bytes + 2 > limits_.query_bytes) {
            return fail("Protocol error: command is larger than " + std::to_string(limits_.query_bytes) + " bytes");
        }
        if (unread.size() < cursor_ + bytes + 2) return Step::incomplete;
        slots_.push_back({cursor_, bytes});
        cursor_ += bytes + 2;
        bulk_bytes_ = -1;
        --args_left_;
    }
    args_.clear();
    for (const Slot& slot : slots_) args_.emplace_back(unread.data() + slot.offset, slot.bytes);
    return finish(Step::command, cursor_);
}

RequestParser::Step RequestParser::next_inline(std::string_view unread) {
    const std::size_t end = unread.find('\n', cursor_);
    if (end == std::string_view::npos) {
        cursor_ = unread.size();
        return unread.size() > kMaxLineBytes ? fail("Protocol error: too big inline request") : Step::incomplete;
    }
    std::string_view line = unread.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    auto split = split_inline(line);
    if (!split) return fail("Protocol error: unbalanced quotes in request");
    if (split->empty()) return finish(Step::nothing, end + 1);
    if (split->size() > limits_.args) return fail("Protocol error: invalid multibulk length");
    inline_args_ = std::move(*split);
    args_.assign(inline_args_.begin(), inline_args_.end());
    return finish(Step::command, end + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (text.empty() || text.size() > 20) return std::nullopt;
    const std::size_t digits = text[0] == '-' ? 1 : 0;
    if (text.size() == digits) return std::nullopt;
    if (text[digits] == '0' && text.size() != 1) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void append_integer(std::string& out, std::int64_t value) {
    char text[24];
    text[0] = ':';
    char* end = std::to_chars(text + 1, text + sizeof text - 2, value).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(text, static_cast<std::size_t>(end - text));
}

namespace {

void append_header(std::string& out, char mark, std::size_t count) {
    char text[24];
    text[0] = mark;
    char* end = std::to_chars(text + 1, text + sizeof text - 2, count).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(text, static_cast<std::size_t>(end - text));
}

}  // namespace

void append_bulk(std::string& out, std::string_view bytes) {
    append_header(out, '$', bytes.size());
    out.append(bytes).append("\r\n", 2);
}

void append_simple(std::string& out, std::string_view text) { out.append(1, '+').append(text).append("\r\n", 2); }

void append_error(std::string& out, std::string_view text) { out.append(1, '-').append(text).append("\r\n", 2); }

void append_null(std::string& out, Resp resp) { out.append(resp == Resp::v3 ? "_\r\n" : "$-1\r\n"); }

void append_array(std::string& out, std::size_t count) { append_header(out, '*', count); }

void append_map(std::string& out, Resp resp, std::size_t pairs) {
    if (resp == Resp::v3) {
        append_header(out, '%', pairs);
    } else {
        append_header(out, '*', pairs * 2);
    }
}

void append_verbatim(std::string& out, Resp resp, std::string_view text) {
    if (resp == Resp::v2) return append_bulk(out, text);
    append_header(out, '=', text.size() + 4);
    out.append("txt:", 4).append(text).append("\r\n", 2);
}

std::optional<std::size_t> reply_bytes(std::string_view bytes) {
    std::size_t at = 0;
    // Replies still to be passed over; nested arrays and maps add theirs.
    for (std::uint64_t left = 1; left > 0; --left) {
        const std::size_t end = bytes.find("\r\n", at);
        if (end == std::string_view::npos) return 0;
        if (end == at) return std::nullopt;
        const char mark = bytes[at];
        const std::string_view number = bytes.substr(at + 1, end - at - 1);
        at = end + 2;
        if (mark == '+' || mark == '-' || mark == ':' || mark == '_' || mark == '#' || mark == ',') continue;
        const auto count = parse_integer(number);
        if (!count || *count < -1 || *count > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
        const std::uint64_t size = *count < 0 ? 0 : static_cast<std::uint64_t>(*count);
        if (mark == '$' || mark == '=') {
            if (*count < 0) continue;
            if (bytes.size() - at < size + 2) return 0;
            at += size + 2;
        } else if (mark == '*' || mark == '~') {
            left += size;
        } else if (mark == '%') {
            left += size * 2;
        } else {
            return std::nullopt;
        }
    }
    return at;
}

}  // namespace lockstep::counter
