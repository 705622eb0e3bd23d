// What was measured, cell by cell, and how it is shown.
#pragma once

#include "tools/bench/histogram.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace lockstep::bench {

// One kind of measurement over one transport, with one durability, payload and way of waiting.
struct CellKey {
    std::string transport;
    Durability durability = Durability::memory;
    std::size_t bytes = 0;
    std::size_t depth = 0;
    Polling polling = Polling::blocking;
    bool operator==(const CellKey&) const = default;
};

// Values of the rounds of one measurement.
class Rounds {
 public:
    void add(double value) { values_.push_back(value); }
    const std::vector<double>& values() const { return values_; }
    // Nothing if there was no round.
    std::optional<double> median() const;
    // How far the rounds lie apart: (largest - smallest) / median.
    double spread() const;

 private:
    std::vector<double> values_;
};

struct Cell {
    CellKey key;
    Rounds p50_us, p99_us, p999_us, entries_per_s;
    Rounds entries_per_sync;           // of the leader's log on disk
    Rounds limit_p50_us, limit_p99_us, limit_bytes_per_s;
    Rounds sync_p50_us, sync_p99_us;   // the disk's limit, where durable commits wait for it
    Histogram latency, limit_latency, sync_latency;  // of all rounds

    // Commit's median over the limit's; of durable commits over the sum of network's and disk's limit.
    std::optional<double> ratio_p50() const;
    // What commits move: of payload, and of the stream, which is what goes to each follower.
    std::optional<double> payload_bytes_per_s() const;
    std::optional<double> stream_bytes_per_s() const;
    // Commit's bytes of the stream over the limit's bytes.
    std::optional<double> ratio_bytes() const;
    // The rounds disagree so much that the machine was busy with something else.
    bool noisy() const;
};

class Results {
 public:
    Cell& cell(const CellKey& key);
    const std::vector<Cell>& cells() const { return cells_; }

    // A line per cell: medians over the rounds. With a warning if they differ much.
    void print_table(std::ostream& out) const;
    // How the transports' commits compare, where there are several.
    void print_transports(std::ostream& out) const;
    // How commits with a log on disk compare with those in memory, where both are there.
    void print_durabilities(std::ostream& out) const;
    // The p50 of every round.
    void print_rounds(std::ostream& out) const;
    // One array with an object per cell; what does not apply is null.
    Result<void> write_json(const std::string& path) const;
    // The latency distributions as a picture.
    Result<void> write_plot(const std::string& path) const;

 private:
    // Null if there is none.
    const Cell* find(const CellKey& key) const;

    std::vector<Cell> cells_;
};

// "64 B", "1 KiB".
std::string size_text(std::size_t bytes);

// An error if a file cannot be written there; makes it if it is not there, and changes nothing in it.
Result<void> check_writable(const std::string& path);
// Writes a file whole. Error: it cannot be written.
Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace lockstep::bench
