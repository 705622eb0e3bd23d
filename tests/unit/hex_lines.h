// Bytes as the documents of the formats show them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace lockstep::log {

// Sixteen to a line, behind the offset of the first.
inline std::string hex_lines(std::span<const std::byte> bytes, std::uint64_t from, std::uint64_t count) {
    std::string out;
    char text[16];
    for (std::uint64_t at = from; at < from + count; at += 16) {
        std::snprintf(text, sizeof text, "%6u ", static_cast<unsigned>(at));
        out += text;
        for (std::uint64_t column = 0; column < std::min<std::uint64_t>(16, from + count - at); ++column) {
            std::snprintf(text, sizeof text, column == 8 ? "  %02x" : " %02x",
                          std::to_integer<unsigned>(bytes[at + column]));
            out += text;
        }
        out += "\n";
    }
    return out;
}

}  // namespace lockstep::log
