// The clock that all measured times are read from: the same for all processes of a machine.
#pragma once

#include <cstdint>
#include <ctime>

namespace lockstep::bench {

inline constexpr std::uint64_t kMillisecond = 1'000'000;  // in nanoseconds, as all times here
inline constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

inline std::uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace lockstep::bench
