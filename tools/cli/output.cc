#include "tools/cli/output.h"

#include <unistd.h>

#include <iostream>

namespace lockstep::cli {

int complain(const Error& error) {
    std::cerr << "lockstep: " << error.message() << '\n';
    return 2;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
}

std::function<void(std::uint64_t, std::uint64_t)> progress_shown() {
    if (::isatty(STDERR_FILENO) == 0) return {};
    return [shown = std::uint64_t{0}](std::uint64_t done, std::uint64_t total) mutable {
        const std::uint64_t percent = total == 0 ? 100 : done * 100 / total;
        if (percent == shown) return;
        shown = percent;
        std::cerr << "\rreading: " << percent << " % of " << total / (1 << 20) << " MiB" << std::flush;
        if (percent == 100) std::cerr << '\n';
    };
}

}  // namespace lockstep::cli
