#include "tools/bench/results.h"

#include "tools/bench/cluster.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <utility>

namespace lockstep::bench {
namespace {

constexpr double kNoisySpread = 0.3;

// What an entry takes in the stream: header and payload, up to the next multiple of 64 (docs/log-format.md).
double in_stream(std::size_t payload_bytes) { return static_cast<double>((48 + payload_bytes + 63) / 64 * 64); }

// A number in `width` columns, "-" where there is none.
std::string column(const std::optional<double>& value, int width, int decimals) {
    char text[64];
    if (value)
        std::snprintf(text, sizeof text, "%*.*f", width, decimals, *value);
    else
        std::snprintf(text, sizeof text, "%*s", width, "-");
    return text;
}

// A value of JSON: null where there is none.
std::string json(const std::optional<double>& value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", value.value_or(0));
    return value ? text : "null";
}
// `text` is a plain word.
std::string json(const std::string& text) { return text.empty() ? "null" : '"' + text + '"'; }
std::string json(std::size_t number) { return std::to_string(number); }

std::optional<double> in_mib(const std::optional<double>& bytes) {
    return bytes ? std::optional(*bytes / (1 << 20)) : std::nullopt;
}

std::string key_text(const CellKey& key) {
    char text[96];
    std::snprintf(text, sizeof text, "%5s%14s%8s%6zu%9s", key.transport.c_str(), lockstep::to_string(key.durability),
                  size_text(key.bytes).c_str(), key.depth, to_string(key.polling));
    return text;
}

}  // namespace

std::optional<double> Rounds::median() const {
    if (values_.empty()) return std::nullopt;
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Rounds::spread() const {
    if (values_.size() < 2) return 0;
    const auto [low, high] = std::ranges::minmax(values_);
    return (high - low) / *median();
}

std::optional<double> Cell::ratio_p50() const {
    const auto commit = p50_us.median();
    const auto limit = limit_p50_us.median();
    const auto sync = sync_p50_us.median();
    if (!commit || !limit || (key.durability == Durability::durable && !sync)) return std::nullopt;
    return *commit / (*limit + sync.value_or(0));
}

std::optional<double> Cell::payload_bytes_per_s() const {
    const auto entries = entries_per_s.median();
    return entries ? std::optional(*entries * static_cast<double>(key.bytes)) : std::nullopt;
}

std::optional<double> Cell::stream_bytes_per_s() const {
    const auto entries = entries_per_s.median();
    return entries ? std::optional(*entries * in_stream(key.bytes)) : std::nullopt;
}

std::optional<double> Cell::ratio_bytes() const {
    const auto stream = stream_bytes_per_s();
    const auto limit = limit_bytes_per_s.median();
    return stream && limit && *limit > 0 ? std::optional(*stream / *limit) : std::nullopt;
}

bool Cell::noisy() const {
    return std::max({p50_us.spread(), limit_p50_us.spread(), sync_p50_us.spread()}) > kNoisySpread;
}

const Cell* Results::find(const CellKey& key) const {
    const auto found = std::ranges::find(cells_, key, &Cell::key);
    return found == cells_.end() ? nullptr : &*found;
}

Cell& Results::cell(const CellKey& key) {
    const auto found = std::ranges::find_if(cells_, [&](const Cell& cell) { return cell.key == key; });
    if (found != cells_.end()) return *found;
    cells_.emplace_back();
    cells_.back().key = key;
    return cells_.back();
}

std::string size_text(std::size_t bytes) {
    if (bytes >= 1024 && bytes % 1024 == 0) return std::to_string(bytes / 1024) + " KiB";
    return std::to_string(bytes) + " B";
}

void Results::print_table(std::ostream& out) const {
    out << "                                               commit, us                        commit, MiB/s  entries"
           "        limit, us   limit sync, us        ratio\n"
           "         durability   bytes depth  polling       p50      p99    p99.9   entries/s payload  stream per sync"
           "      p50      p99   MiB/s      p50    p50  bytes\n";
    bool any_noisy = false;
    for (const Cell& cell : cells_) {
        any_noisy |= cell.noisy();
        out << key_text(cell.key) << column(cell.p50_us.median(), 10, 1) << column(cell.p99_us.median(), 9, 1)
            << column(cell.p999_us.median(), 9, 1) << column(cell.entries_per_s.median(), 12, 0)
            << column(in_mib(cell.payload_bytes_per_s()), 8, 1) << column(in_mib(cell.stream_bytes_per_s()), 8, 1)
            << column(cell.entries_per_sync.median(), 9, 1)
            << column(cell.limit_p50_us.median(), 9, 1) << column(cell.limit_p99_us.median(), 9, 1)
            << column(in_mib(cell.limit_bytes_per_s.median()), 8, 1) << column(cell.sync_p50_us.median(), 9, 1)
            << column(cell.ratio_p50(), 7, 2)
            << column(cell.ratio_bytes(), 7, 2) << (cell.noisy() ? "  noisy" : "") << '\n';
    }
    if (any_noisy)
        out << "noisy: the rounds' p50 lie more than " << static_cast<int>(kNoisySpread * 100)
            << " % apart. Something else runs on this machine; measure again when it does not.\n";
}

void Results::print_transports(std::ostream& out) const {
    for (const Cell& cell : cells_) {
        CellKey over_tcp = cell.key;
        over_tcp.transport = "tcp";
        const Cell* const tcp = find(over_tcp);
        if (cell.key.transport == "tcp" || tcp == nullptr) continue;
        const auto own = cell.p50_us.median();
        const auto theirs = tcp->p50_us.median();
        if (own && theirs)
            out << key_text(cell.key) << "  p50 is that of tcp / " << std::fixed << std::setprecision(2)
                << *theirs / *own << '\n';
    }
}

void Results::print_durabilities(std::ostream& out) const {
    for (const Cell& cell : cells_) {
        CellKey in_memory = cell.key;
        in_memory.durability = Durability::memory;
        const Cell* const memory = find(in_memory);
        if (cell.key == in_memory || memory == nullptr) continue;
        const auto times = [](const Rounds& own, const Rounds& theirs) {
            return own.median() && theirs.median() ? std::optional(*own.median() / *theirs.median()) : std::nullopt;
        };
        out << key_text(cell.key) << "  that of memory x" << column(times(cell.p50_us, memory->p50_us), 8, 2)
            << " in p50, x" << column(times(cell.entries_per_s, memory->entries_per_s), 6, 2) << " in entries/s\n";
    }
}

void Results::print_rounds(std::ostream& out) const {
    out << "p50 of each round, us:\n";
    for (const Cell& cell : cells_) {
        out << key_text(cell.key);
        const auto list = [&](const char* name, const Rounds& rounds) {
            if (rounds.values().empty()) return;
            out << "  " << name;
            for (const double value : rounds.values()) out << column(value, 9, 1);
        };
        list("commit", cell.p50_us);
        list("limit", cell.limit_p50_us);
        list("sync", cell.sync_p50_us);
        out << '\n';
    }
}

Result<void> Results::write_json(const std::string& path) const {
    std::string text = "[";
    for (const Cell& cell : cells_) {
        const std::pair<const char*, std::string> fields[] = {
            {"transport", json(cell.key.transport)},
            {"durability", json(std::string(lockstep::to_string(cell.key.durability)))},
            {"replicas", json(kReplicas)},
            {"bytes", json(cell.key.bytes)},
            {"depth", json(cell.key.depth)},
            {"polling", json(std::string(to_string(cell.key.polling)))},
            {"p50_us", json(cell.p50_us.median())},
            {"p99_us", json(cell.p99_us.median())},
            {"p999_us", json(cell.p999_us.median())},
            {"entries_per_s", json(cell.entries_per_s.median())},
            {"entries_per_sync", json(cell.entries_per_sync.median())},
            {"limit_p50_us", json(cell.limit_p50_us.median())},
            {"limit_p99_us", json(cell.limit_p99_us.median())},
            {"limit_bytes_per_s", json(cell.limit_bytes_per_s.median())},
            {"sync_p50_us", json(cell.sync_p50_us.median())},
            {"sync_p99_us", json(cell.sync_p99_us.median())},
            {"ratio_p50", json(cell.ratio_p50())},
            {"payload_bytes_per_s", json(cell.payload_bytes_per_s())},
            {"stream_bytes_per_s", json(cell.stream_bytes_per_s())},
            {"ratio_bytes", json(cell.ratio_bytes())}};
        text += text.size() > 1 ? ",\n {" : "\n {";
        for (const auto& [key, value] : fields)
            text += std::string(&key == &fields[0].first ? "" : ", ") + '"' + key + "\": " + value;
        text += '}';
    }
    return write_file(path, text + "\n]\n");
}

Result<void> check_writable(const std::string& path) {
    if (std::ofstream(path, std::ios::app)) return {};
    return Error("cannot write " + path + ": check that its folder is there and may be written");
}

Result<void> write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text << std::flush;
    if (!file) return Error("cannot write " + path + ": is the disk full?");
    return {};
}

}  // namespace lockstep::bench
