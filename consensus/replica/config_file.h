// A replica's config in Protobuf's text format (proto/config.proto).
#pragma once

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <string>
#include <string_view>

namespace lockstep {

// A config file is no longer than this.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// Reads and checks a config. `name` stands for the text in errors, which read "name:line:column: key: what is wrong
// and what is allowed", lines and columns counted from 1. Any bytes are fine as `text`. Any thread; does not block.
Result<Options> parse_config(std::string_view text, const std::string& name);

}  // namespace lockstep
