#include "tools/bench/disk_limit.h"

#include "tools/bench/results.h"
#include "tools/bench/timing.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

namespace lockstep::bench {

namespace {

constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;
constexpr std::size_t kPiece = std::size_t{1} << 20;

Error disk_error(const char* what, const std::string& path) {
    return Error(std::string("cannot ") + what + " " + path + ": " + std::strerror(errno) +
                 "; is there room for 64 MiB, and may this user write there?");
}

}  // namespace

Result<DiskLimit> DiskLimit::make(const std::string& folder) {
    std::string path = folder + "/lockstep-bench-XXXXXX";
    Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
    if (file.number() < 0) return disk_error("make", path);
    ::unlink(path.c_str());
    DiskLimit limit(std::move(file), path);
    const std::vector<char> piece(kPiece, 'x');
    for (std::uint64_t at = 0; at < kFileBytes; at += kPiece)
        if (auto written = limit.write(piece, at); !written) return std::move(written).error();
    if (auto synced = limit.sync(); !synced) return std::move(synced).error();
    return limit;
}

Result<void> DiskLimit::write(const std::vector<char>& bytes, std::uint64_t at) const {
    const ssize_t written = ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(bytes.size())) return disk_error("write", path_);
    return {};
}

Result<void> DiskLimit::sync() const {
    if (::fdatasync(file_.number()) != 0) return disk_error("fdatasync", path_);
    return {};
}

Result<Histogram> DiskLimit::measure(const LimitPlan& plan) {
    const std::vector<char> bytes(plan.bytes, 'y');
    std::uint64_t at = 0;
    return time_rounds(plan, [&](std::uint64_t) -> Result<void> {
        if (at + bytes.size() > kFileBytes) at = 0;
        if (auto written = write(bytes, at); !written) return written;
        at += bytes.size();
        return sync();
    });
}

int run_disk_limit(const DiskLimitPlan& plan) {
    auto disk = DiskLimit::make(plan.folder);
    if (!disk) {
        std::cerr << "lockstep-bench: " << disk.error().message() << '\n';
        return 1;
    }
    std::string json = "[";
    std::printf("%-8s %10s %10s %12s %12s\n", "payload", "p50 us", "p99 us", "syncs/s", "MiB/s");
    for (const std::size_t bytes : plan.bytes) {
        LimitPlan each;
        each.bytes = bytes;
        // The warm-up comes on top.
        each.measure_ns = static_cast<std::uint64_t>(plan.seconds * static_cast<double>(kSecond));
        each.warm_up_ns = each.measure_ns / 10;
        auto latency = disk.value().measure(each);
        if (!latency) {
            std::cerr << "lockstep-bench: " << latency.error().message() << '\n';
            return 1;
        }
        const Histogram& found = latency.value();
        const double rate = static_cast<double>(found.total() * kSecond) /
                            static_cast<double>(each.measure_ns);
        std::printf("%-8s %10.1f %10.1f %12.0f %12.1f\n", size_text(bytes).c_str(), found.at_us(0.5), found.at_us(0.99),
                    rate, rate * static_cast<double>(bytes) / (1 << 20));
        char line[200];
        std::snprintf(line, sizeof line,
                      "%s\n  {\"bytes\": %zu, \"sync_p50_us\": %.1f, \"sync_p99_us\": %.1f, \"syncs_per_s\": %.1f}",
                      json.size() == 1 ? "" : ",", bytes, found.at_us(0.5), found.at_us(0.99), rate);
        json += line;
    }
    if (plan.json.empty()) return 0;
    if (auto written = write_file(plan.json, json + "\n]\n"); !written) {
        std::cerr << "lockstep-bench: " << written.error().message() << '\n';
        return 1;
    }
    return 0;
}

}  // namespace lockstep::bench
