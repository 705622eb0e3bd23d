// The bounds that one counter server keeps. Each is a command-line option; docs/counter.md lists them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lockstep::counter {

// The longest inline command, and the longest line that announces a length, in bytes (Redis' own bound).
inline constexpr std::size_t kMaxLineBytes = 64 * 1024;
// A group of commands is sent off when it has grown to this many bytes; one command more may go past it.
inline constexpr std::size_t kGroupBytes = 256 * 1024;
// Locally made replies that wait inside one group are bounded likewise.
inline constexpr std::size_t kLiteralBytes = 256 * 1024;
// A client with more unread replies than this is not served further until it reads.
inline constexpr std::size_t kOutputHighWaterBytes = 1024 * 1024;
// Room made for each read from a socket, in bytes.
inline constexpr std::size_t kReadBytes = 16 * 1024;
// Groups that one forwarding replica may have unanswered on one connection.
inline constexpr std::size_t kMaxForwarded = 16 * 1024;

struct Limits {
    std::uint32_t clients = 10'000;               // connections, those of forwarding replicas among them
    std::uint32_t args = 65'536;                  // arguments of one command
    std::uint32_t key_bytes = 16 * 1024;
    std::uint32_t value_bytes = 512 * 1024;
    std::uint32_t query_bytes = 1024 * 1024;      // one command as it comes over the wire
    std::uint32_t reply_bytes = 16 * 1024 * 1024;  // all replies of one group together
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // keys and values; past it, commands that add are refused
    std::chrono::milliseconds patience{2000};     // for how long a command may wait for a leader or for room in the log
    std::chrono::milliseconds forward_timeout{5000};  // for how long another replica may owe an answer
    std::chrono::milliseconds output_stall{
        60'000};  // a client that reads nothing of its replies for so long is dropped
};

}  // namespace lockstep::counter
