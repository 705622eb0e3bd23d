// From a client's words to a group's bytes.
#pragma once

#include "tools/counter/command.h"
#include "tools/counter/group.h"
#include "tools/counter/limits.h"

#include <lockstep/replica.h>

#include <span>
#include <string>
#include <string_view>

namespace lockstep::counter {

// Adds a command on data, whose arity has been checked, to a group. Returns an error text fit for append_error and
// leaves the group as it was if the command cannot mean anything (options, numbers, sizes); empty if it was added.
std::string translate(const CommandSpec& spec, std::span<const std::string_view> args, const Limits& limits,
                      GroupWriter& group);

// What is said of a command that was not applied, in place of its reply; see docs/counter.md. Its first word says
// whether it may have had an effect: only UNKNOWN may.
std::string not_applied(std::string_view command, Fate fate, Reason reason, const Limits& limits);
inline constexpr std::string_view kUnknownCode = "UNKNOWN";
inline constexpr std::string_view kNoLeaderCode = "CLUSTERDOWN";
inline constexpr std::string_view kBusyCode = "BUSY";
inline constexpr std::string_view kStoppingCode = "STOPPING";

}  // namespace lockstep::counter
