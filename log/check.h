// Assertions that stay on in release: a broken invariant ends the process with what was expected and what was found.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// Prints where, what was expected and what was found, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expected);
[[noreturn]] void check_failed(const char* file, int line, const char* expected, std::uint64_t left,
                               std::uint64_t right);

}  // namespace lockstep

// One fact each: LOCKSTEP_CHECK(a); LOCKSTEP_CHECK(b); never a && b.
#define LOCKSTEP_CHECK(condition)                                            \
    do {                                                                     \
        if (!(condition)) [[unlikely]]                                       \
            ::lockstep::check_failed(__FILE__, __LINE__, #condition);        \
    } while (false)

// A comparison of two unsigned numbers, whose values the message shows.
#define LOCKSTEP_CHECK_OP(left, op, right)                                                                      \
    do {                                                                                                        \
        const std::uint64_t lockstep_left = (left);                                                             \
        const std::uint64_t lockstep_right = (right);                                                           \
        if (!(lockstep_left op lockstep_right)) [[unlikely]]                                                    \
            ::lockstep::check_failed(__FILE__, __LINE__, #left " " #op " " #right, lockstep_left, lockstep_right); \
    } while (false)
