// Commands that the server answers by itself.
#pragma once

#include "tools/counter/client.h"
#include "tools/counter/command.h"

#include <span>
#include <string>
#include <string_view>

namespace lockstep::counter {

// Carries out a command that is not on data and whose arity has been checked. Appends its reply to `out`.
void run_local(const CommandSpec& spec, std::span<const std::string_view> args, const Shared& shared, Client& client,
               std::string& out);

// The text of INFO, with the sections named, or all if `sections` is empty.
std::string info_text(const Shared& shared, std::span<const std::string_view> sections);
// Redis' version that clients may take this server for.
inline constexpr std::string_view kRedisVersion = "7.0.15";
inline constexpr std::string_view kServerVersion = "0.1.0";

// When the newest snapshot here was complete, BGSAVE's or any other, in seconds since 1970.
std::int64_t last_save_s(const Shared& shared, const LogStatus& status);

// COMMAND and CONFIG, in files of their own.
void run_command(std::span<const std::string_view> args, const Client& client, std::string& out);
void run_config(std::span<const std::string_view> args, const Shared& shared, const Client& client, std::string& out);

// The subcommand's errors in Redis' words; `container` is in lower case.
void append_unknown_subcommand(std::string_view container, std::string_view subcommand, std::string& out);
// Whether `text` matches Redis' glob `pattern` (*, ?), letters in any case.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace lockstep::counter
