// The first thing that is wrong with a replica's options, in a form that can be pointed at in a file.
#pragma once

#include <lockstep/options.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct OptionProblem {
    std::string key;                    // such as "ring_bytes", or "members" for the list as a whole
    std::optional<std::size_t> member;  // set if `key` is one of that member: its place in Options::members, from 0
    std::string text;                   // the value and what is allowed, such as "5 is not in 10 to 60000"

    // "members[1].address: ..." or "ring_bytes: ...".
    std::string message() const;
};

// What a key with a plain range takes.
struct KeyRange {
    std::string_view key;
    std::uint64_t low;
    std::uint64_t high;
    std::string_view remark;  // what the numbers alone do not say; else empty
};
inline constexpr KeyRange kKeyRanges[] = {
    {"id", 1, 255, ""},
    {"ring_bytes", kMinRingBytes, kMaxRingBytes, "a power of two"},
    {"election_timeout_ms", 10, 60'000, ""},
    {"heartbeat_ms", 1, 15'000, "at most a quarter of election_timeout_ms"},
    {"max_queued_proposals", 1, std::uint64_t{1} << 20, ""},
    {"max_queued_bytes", 1, std::uint64_t{1} << 32, ""},
    {"spin_us", 1, 10'000, ""},
    {"rdma_port", 0, 255, "0 for the first that fits"},
};

// "1 to 255", "1048576 to 2147483648, a power of two"; empty if `key` has no range.
std::string allowed_range(std::string_view key);

// `text` in quotes, cut if long, control characters as hexadecimal escapes: fit for a message.
std::string quoted(std::string_view text);

// Nothing if every bound holds. Any thread; does not block.
std::optional<OptionProblem> find_problem(const Options& options);

}  // namespace lockstep
