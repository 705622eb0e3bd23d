// What is going on, on stderr: a line that is written over on a terminal, lines elsewhere.
#pragma once

#include "tools/bench/clock.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace lockstep::bench {

class Progress {
 public:
    Progress() : terminal_(::isatty(STDERR_FILENO) == 1), from_ns_(now_ns()) {}
    ~Progress() {
        if (terminal_) std::fputs("\r\033[K", stderr);
    }
    void say(const std::string& what) const {
        const double seconds = static_cast<double>(now_ns() - from_ns_) / static_cast<double>(kSecond);
        std::fprintf(stderr, terminal_ ? "\r\033[K[%5.1f s] %s" : "[%5.1f s] %s\n", seconds, what.c_str());
        std::fflush(stderr);
    }

 private:
    const bool terminal_;
    const std::uint64_t from_ns_;
};

}  // namespace lockstep::bench
