#include "tools/counter/translate.h"

#include <cctype>
#include <limits>

namespace lockstep::counter {
namespace {

std::string upper(std::string_view name) {
    std::string text(name);
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

std::string long_key_error(std::string_view key, const Limits& limits) {
    return "ERR the key has " + std::to_string(key.size()) + " bytes: at most " + std::to_string(limits.key_bytes) +
           " are taken (see --max-key-bytes)";
}

std::string translate_step(const CommandSpec& spec, std::span<const std::string_view> args, GroupWriter& group) {
    const auto by = parse_integer(args[2]);
    if (!by) return std::string(kNotAnInteger);
    if (spec.id == CommandId::decrby && *by == std::numeric_limits<std::int64_t>::min()) {
        return std::string(kDecrementOverflow);
    }
    group.add(spec.id, args[1], *by);
    return {};
}

std::string translate_set(std::span<const std::string_view> args, const Limits& limits, GroupWriter& group) {
    std::uint8_t flags = 0;
    for (const std::string_view option : args.subspan(3)) {
        if (same_name(option, "nx")) {
            flags |= kSetIfMissing;
        } else if (same_name(option, "xx")) {
            flags |= kSetIfPresent;
        } else if (same_name(option, "get")) {
            flags |= kSetReturnsOld;
        } else {
            return std::string(kSyntaxError);
        }
    }
    if ((flags & kSetIfMissing) != 0 && (flags & kSetIfPresent) != 0) return std::string(kSyntaxError);
    if (args[2].size() > limits.value_bytes) {
        return "ERR the value has " + std::to_string(args[2].size()) + " bytes: at most " +
               std::to_string(limits.value_bytes) + " are taken (see --max-value-bytes)";
    }
    group.add_set(flags, args[1], args[2]);
    return {};
}

}  // namespace

std::string translate(const CommandSpec& spec, std::span<const std::string_view> args, const Limits& limits,
                      GroupWriter& group) {
    if (spec.id == CommandId::dbsize) {
        group.add_dbsize();
        return {};
    }
    const bool many = spec.last_key < 0;
    for (const std::string_view key : args.subspan(1, many ? args.size() - 1 : 1)) {
        if (key.size() > limits.key_bytes) return long_key_error(key, limits);
    }
    switch (spec.id) {
        case CommandId::incrby:
        case CommandId::decrby: return translate_step(spec, args, group);
        case CommandId::set: return translate_set(args, limits, group);
        default: break;
    }
    if (many) {
        group.add(spec.id, args.subspan(1));
    } else {
        group.add(spec.id, args[1]);
    }
    return {};
}

std::string not_applied(std::string_view command, Fate fate, Reason reason, const Limits& limits) {
    const std::string name = upper(command);
    if (fate == Fate::unknown) {
        return std::string(kUnknownCode) + " outcome of " + name +
               " is unknown: the leader was lost before it answered; it may or may not take effect";
    }
    const std::string patience = std::to_string(limits.patience.count()) + " ms";
    switch (reason) {
        case Reason::busy:
            return std::string(kBusyCode) + " the log had no room for " + patience + ": " + name +
                   " was not executed, try again later";
        case Reason::too_large:
            return "ERR " + name + " is larger than the log takes: it was not executed";
        case Reason::stopped:
            return std::string(kStoppingCode) + " this replica is stopping: " + name +
                   " was not executed, try another replica";
        case Reason::none:
        case Reason::not_leader: break;
    }
    return std::string(kNoLeaderCode) + " no leader answered within " + patience + ": " + name +
           " was not executed, try again";
}

}  // namespace lockstep::counter
