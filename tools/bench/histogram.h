// How often each latency was seen, in fixed memory: recording costs an addition and never allocates.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::bench {

// Buckets are linear within a power of two and 1/128 of it wide (the layout of HdrHistogram), so that a percentile is
// off by less than 0.8 %. Not thread-safe.
class Histogram {
 public:
    Histogram() : counts_(std::make_unique<Counts>()) {}
    Histogram(Histogram&&) noexcept = default;
    Histogram& operator=(Histogram&&) noexcept = default;

    void record(std::uint64_t ns) {
        ++(*counts_)[place(ns)];
        ++total_;
    }
    void clear();
    void add(const Histogram& other);

    std::uint64_t total() const { return total_; }
    // The value that `fraction` (0 to 1) of all are at or below, in nanoseconds; 0 if there are none.
    std::uint64_t at(double fraction) const;
    double at_us(double fraction) const { return static_cast<double>(at(fraction)) / 1000.0; }

 private:
    static constexpr unsigned kBits = 7;
    static constexpr std::uint64_t kPerPower = std::uint64_t{1} << kBits;
    static constexpr std::size_t kBuckets = (64 - kBits + 1) * kPerPower;
    using Counts = std::array<std::uint64_t, kBuckets>;

    static std::size_t place(std::uint64_t ns) {
        if (ns < kPerPower) return ns;
        const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBits;
        return (shift + std::size_t{1}) * kPerPower + ((ns >> shift) - kPerPower);
    }
    // The middle of a bucket.
    static std::uint64_t value(std::size_t place);

    std::unique_ptr<Counts> counts_;
    std::uint64_t total_ = 0;
};

}  // namespace lockstep::bench
