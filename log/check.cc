#include "log/check.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace lockstep {

void check_failed(const char* file, int line, const char* expected) {
    std::fprintf(stderr, "%s:%d: broken invariant: expected %s\n", file, line, expected);
    std::abort();
}

void check_failed(const char* file, int line, const char* expected, std::uint64_t left, std::uint64_t right) {
    std::fprintf(stderr, "%s:%d: broken invariant: expected %s, found %" PRIu64 " and %" PRIu64 "\n", file, line,
                 expected, left, right);
    std::abort();
}

}  // namespace lockstep
