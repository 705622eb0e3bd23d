// How one replica's counter hands groups to another's, after the command LOCKSTEP.UPSTREAM on the client port.
//
// All numbers are little endian. A request is: u32 bytes behind this field, u64 number, then the group. An answer is:
// u32 bytes behind this field, u64 number, u8 fate, u8 reason, u8 leader's id, then the replies in RESP. Numbers are
// the asker's; answers come in any order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lockstep::counter {

inline constexpr std::string_view kUpstreamCommand = "lockstep.upstream";
inline constexpr std::string_view kUpstreamVersion = "1";
inline constexpr std::size_t kFrameLengthBytes = 4;
inline constexpr std::size_t kRequestHeaderBytes = 8;
inline constexpr std::size_t kAnswerHeaderBytes = 11;

template <class Number>
void put_number(std::string& out, Number value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
        out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
}

// Requires that `bytes` holds at least the number.
template <class Number>
Number get_number(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    return static_cast<Number>(value);
}

// The first frame in `bytes`, without its length; empty if it has not arrived whole. `oversized` is set where the
// length is below `least` or above `most`: the stream is of no use then.
inline std::string_view first_frame(std::string_view bytes, std::size_t least, std::size_t most, bool& oversized) {
    if (bytes.size() < kFrameLengthBytes) return {};
    const std::size_t size = get_number<std::uint32_t>(bytes);
    oversized = size < least || size > most;
    if (oversized || bytes.size() - kFrameLengthBytes < size) return {};
    return bytes.substr(kFrameLengthBytes, size);
}

}  // namespace lockstep::counter
