// How the commands say things.
#pragma once

#include <lockstep/result.h>

#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::cli {

// Says what could not be done; the program's status then.
int complain(const Error& error);
// Text in JSON.
std::string quoted(const std::string& text);
// A bar on a terminal, nothing in a pipe: bytes, of how many.
std::function<void(std::uint64_t done, std::uint64_t total)> progress_shown();

}  // namespace lockstep::cli
