#include "tools/counter/command.h"

#include <array>
#include <cstring>

namespace lockstep::counter {
namespace {

constexpr CommandSpec kCommands[] = {
    {CommandId::incr, "incr", 2, true, true, 1, 1, 1, "write denyoom fast", "string",
     "Increments the integer value of a key by one."},
    {CommandId::incrby, "incrby", 3, true, true, 1, 1, 1, "write denyoom fast", "string",
     "Increments the integer value of a key by a number."},
    {CommandId::decr, "decr", 2, true, true, 1, 1, 1, "write denyoom fast", "string",
     "Decrements the integer value of a key by one."},
    {CommandId::decrby, "decrby", 3, true, true, 1, 1, 1, "write denyoom fast", "string",
     "Decrements the integer value of a key by a number."},
    {CommandId::get, "get", 2, false, false, 1, 1, 1, "readonly fast", "string", "Returns the value of a key."},
    {CommandId::mget, "mget", -2, false, false, 1, -1, 1, "readonly fast", "string", "Returns the values of keys."},
    {CommandId::set, "set", -3, true, true, 1, 1, 1, "write denyoom", "string",
     "Sets the value of a key; NX, XX and GET are known."},
    {CommandId::del, "del", -2, true, false, 1, -1, 1, "write", "generic", "Deletes keys."},
    {CommandId::exists, "exists", -2, false, false, 1, -1, 1, "readonly fast", "generic", "Counts keys that exist."},
    {CommandId::dbsize, "dbsize", 1, false, false, 0, 0, 0, "readonly fast", "server", "Counts all keys."},
    {CommandId::ping, "ping", -1, false, false, 0, 0, 0, "fast", "connection", "Answers PONG, or its argument."},
    {CommandId::echo, "echo", 2, false, false, 0, 0, 0, "loading stale fast", "connection", "Answers its argument."},
    {CommandId::info, "info", -1, false, false, 0, 0, 0, "loading stale", "server", "Tells about this replica."},
    {CommandId::command, "command", -1, false, false, 0, 0, 0, "loading stale", "server", "Tells about commands."},
    {CommandId::config, "config", -2, false, false, 0, 0, 0, "admin noscript loading stale", "server",
     "CONFIG GET shows settings."},
    {CommandId::client, "client", -2, false, false, 0, 0, 0, "noscript loading stale", "connection",
     "Tells about this connection, and names it."},
    {CommandId::select, "select", 2, false, false, 0, 0, 0, "loading stale fast", "connection",
     "Takes database 0, the only one."},
    {CommandId::quit, "quit", -1, false, false, 0, 0, 0, "noscript loading stale fast", "connection",
     "Closes the connection."},
    {CommandId::hello, "hello", -1, false, false, 0, 0, 0, "noscript loading stale fast", "connection",
     "Chooses version 2 or 3 of the protocol."},
    {CommandId::reset, "reset", 1, false, false, 0, 0, 0, "noscript loading stale fast", "connection",
     "Makes the connection as new."},
    {CommandId::bgsave, "bgsave", -1, false, false, 0, 0, 0, "admin noscript", "server",
     "Takes a snapshot of this replica's data, aside."},
    {CommandId::lastsave, "lastsave", 1, false, false, 0, 0, 0, "loading stale fast", "server",
     "Returns the time of the last snapshot."},
};
static_assert(std::size(kCommands) <= 32, "the table below is to stay half empty");

// All names are letters only, so or-ing 0x20 to each byte makes equal exactly what differs in case alone.
constexpr std::uint64_t fold(std::string_view name) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(name[i]) | 0x20U) << (8 * i);
    }
    return bytes;
}

constexpr std::size_t slot_of(std::uint64_t folded) { return (folded * 0x9e3779b97f4a7c15ULL) >> 58; }

struct Table {
    std::array<std::uint64_t, 64> folded{};
    std::array<const CommandSpec*, 64> specs{};
    constexpr Table() {
        for (const CommandSpec& spec : kCommands) {
            std::size_t slot = slot_of(fold(spec.name));
            while (specs[slot] != nullptr) slot = (slot + 1) % 64;
            folded[slot] = fold(spec.name);
            specs[slot] = &spec;
        }
    }
};
constexpr Table kTable;

}  // namespace

std::span<const CommandSpec> all_commands() { return kCommands; }

const CommandSpec* find_command(std::string_view name) {
    if (name.empty() || name.size() > 8) return nullptr;
    const std::uint64_t folded = fold(name);
    for (std::size_t slot = slot_of(folded); kTable.specs[slot] != nullptr; slot = (slot + 1) % 64) {
        if (kTable.folded[slot] == folded) return kTable.specs[slot];
    }
    return nullptr;
}

const CommandSpec* find_opcode(std::uint8_t opcode) {
    static_assert(kCommands[9].id == CommandId::dbsize, "commands on data stand first, by their number from 1");
    return opcode >= 1 && opcode <= 10 ? &kCommands[opcode - 1] : nullptr;
}

std::string_view as_c_string(std::string_view text, std::size_t bytes) {
    return text.substr(0, std::min(text.find('\0'), bytes));
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (c == '\r' || c == '\n') c = ' ';
    }
    return text;
}

bool same_name(std::string_view any_case, std::string_view lower) {
    if (any_case.size() != lower.size()) return false;
    for (std::size_t i = 0; i < lower.size(); ++i) {
        const char c = any_case[i];
        if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != lower[i]) return false;
    }
    return true;
}

std::string unknown_command_error(std::span<const std::string_view> args) {
    std::string shown;
    for (std::size_t i = 1; i < args.size() && shown.size() < 128; ++i) {
        const std::size_t room = 128 - shown.size();
        shown.append("'").append(as_c_string(args[i], room)).append("' ");
    }
    std::string text = "ERR unknown command '";
    text.append(as_c_string(args[0], 128)).append("', with args beginning with: ").append(shown);
    return one_line(std::move(text));
}

std::string arity_error(std::string_view full_name) {
    return std::string("ERR wrong number of arguments for '").append(full_name).append("' command");
}

}  // namespace lockstep::counter
