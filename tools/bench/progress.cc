#include "tools/bench/progress.h"

#include "tools/bench/clock.h"

#include <unistd.h>

#include <cstdio>

namespace lockstep::bench {
namespace {

bool on_terminal() {
    static const bool terminal = ::isatty(STDERR_FILENO) == 1;
    return terminal;
}

void clear_line() {
    if (on_terminal()) std::fputs("\r\033[K", stderr);
}

}  // namespace

Progress::Progress() : from_ns_(now_ns()) {}

Progress::~Progress() { clear_line(); }

void Progress::say(const std::string& what) const {
    const double seconds = static_cast<double>(now_ns() - from_ns_) / static_cast<double>(kSecond);
    clear_line();
    std::fprintf(stderr, "[%5.1f s] %s%s", seconds, what.c_str(), on_terminal() ? "" : "\n");
    std::fflush(stderr);
}

void tell(const std::string& what) {
    clear_line();
    std::fprintf(stderr, "lockstep-bench: %s\n", what.c_str());
}

}  // namespace lockstep::bench
