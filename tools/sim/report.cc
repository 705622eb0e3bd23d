#include "tools/sim/report.h"

#include "sim/shrink.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <fstream>

namespace lockstep::tools::sim {

namespace {

using lockstep::sim::Case;
using lockstep::sim::Failure;
using lockstep::sim::RunResult;

constexpr std::size_t kTraceLines = 40;

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return static_cast<bool>(file);
}

void print_end_of(const std::string& path) {
    std::ifstream file(path);
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
        if (lines.size() > kTraceLines) lines.pop_front();
    }
    for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
}

}  // namespace

int exit_of(Failure failure) {
    switch (failure) {
        case Failure::none:
            return kNothingFound;
        case Failure::safety:
            return kSafety;
        case Failure::no_progress:
            return kNoProgress;
        case Failure::crash:
            return kCrash;
    }
    return kCannot;
}

std::string summary(const Case& of, const RunResult& result) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s, %zu replicas, ring of %" PRIu64 " bytes, %.1f virtual seconds, %" PRIu64 " elections, %" PRIu64
                  " committed, %" PRIu64 " acknowledged, hash %016" PRIx64,
                  to_string(of.options.durability), of.options.replicas, of.options.ring_bytes,
                  static_cast<double>(result.virtual_ns) / 1e9,
                  result.elections, result.committed, result.acknowledged, result.hash);
    const std::string found = result.failure == Failure::none ? "nothing found"
                                                              : std::string(to_string(result.failure));
    return found + "; " + text;
}

void report_failure(const Case& of, const RunResult& result, const Reporting& reporting) {
    std::printf("%s\n", result.what.c_str());
    std::printf("reproduce: %s\n", reporting.reproduce.c_str());
    std::fflush(stdout);
    lockstep::sim::Shrunk shrunk{of, result, 0};
    if (reporting.shrink.count() > 0) {
        const bool tells = isatty(STDERR_FILENO) != 0;
        shrunk = lockstep::sim::shrink(of, result, reporting.shrink, [tells](std::size_t actions) {
            if (tells) std::fprintf(stderr, "\rshrinking: %zu actions ", actions);
        });
        if (tells) std::fprintf(stderr, "\n");
        std::printf("shrunk from %zu actions to %zu, in %zu runs\n", of.actions.size(), shrunk.smaller.actions.size(),
                    shrunk.tries);
    }
    const std::string file = reporting.name + ".case";
    if (write_file(file, shrunk.smaller.text()))
        std::printf("replay: %s --replay %s\n", reporting.program.c_str(), file.c_str());
    if (!reporting.trace) return;
    const std::string trace = reporting.name + ".trace";
    lockstep::sim::run_apart(shrunk.smaller, lockstep::sim::kRunLimit, trace);
    std::printf("the end of %s:\n", trace.c_str());
    print_end_of(trace);
    std::printf("  %s\n", shrunk.failure.what.substr(0, shrunk.failure.what.find('\n')).c_str());
}

}  // namespace lockstep::tools::sim
