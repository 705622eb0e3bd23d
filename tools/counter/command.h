// The commands that the counter knows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::counter {

// Those with a number below kFirstLocal work on the replicated data; the number is their opcode in log entries, so it
// never changes. The others are answered by the server that the client talks to.
enum class CommandId : std::uint8_t {
    incr = 1,
    incrby = 2,
    decr = 3,
    decrby = 4,
    get = 5,
    mget = 6,
    set = 7,
    del = 8,
    exists = 9,
    dbsize = 10,
    ping = 64,
    echo,
    info,
    command,
    config,
    client,
    select,
    quit,
    hello,
    reset,
    bgsave,
    lastsave,
};
inline constexpr std::uint8_t kFirstLocal = 64;

struct CommandSpec {
    CommandId id;
    std::string_view name;     // lower case, at most eight letters
    int arity;                 // counts the name; negative: at least so many
    bool writes;               // goes through the log
    bool adds;                 // may make the data larger
    int first_key, last_key, key_step;
    std::string_view flags;    // as COMMAND shows them, separated by blanks
    std::string_view group;    // as COMMAND DOCS shows it
    std::string_view summary;

    bool on_data() const { return static_cast<std::uint8_t>(id) < kFirstLocal; }
    bool takes(std::size_t args) const {
        return arity < 0 ? args >= static_cast<std::size_t>(-arity) : args == static_cast<std::size_t>(arity);
    }
};

std::span<const CommandSpec> all_commands();
// In any case of letters; null if there is none. The result lives for ever.
const CommandSpec* find_command(std::string_view name);
// The spec of a command on data; null for any other number.
const CommandSpec* find_opcode(std::uint8_t opcode);

// Error texts in Redis' words, with their code, fit for append_error.
std::string unknown_command_error(std::span<const std::string_view> args);
std::string arity_error(std::string_view full_name);
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kOverflow = "ERR increment or decrement would overflow";
inline constexpr std::string_view kDecrementOverflow = "ERR decrement would overflow";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";

// `text` up to its first NUL byte and at most `bytes` long, as C's printf shows it.
std::string_view as_c_string(std::string_view text, std::size_t bytes);
// Line breaks made blanks: an error reply is one line.
std::string one_line(std::string text);
// Whether two names are the same but for the case of ASCII letters; `lower` is in lower case.
bool same_name(std::string_view any_case, std::string_view lower);

}  // namespace lockstep::counter
