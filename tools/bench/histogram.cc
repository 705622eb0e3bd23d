#include "tools/bench/histogram.h"

#include <algorithm>
#include <cmath>

namespace lockstep::bench {

void Histogram::clear() {
    counts_->fill(0);
    total_ = 0;
}

void Histogram::add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) (*counts_)[i] += (*other.counts_)[i];
    total_ += other.total_;
}

std::uint64_t Histogram::at(double fraction) const {
    if (total_ == 0) return 0;
    const auto rank = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total_)));
    const std::uint64_t wanted = std::clamp<std::uint64_t>(rank, 1, total_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
        seen += (*counts_)[i];
        if (seen >= wanted) return value(i);
    }
    return value(kBuckets - 1);
}

std::uint64_t Histogram::value(std::size_t place) {
    if (place < kPerPower) return place;
    const std::size_t shift = place / kPerPower - 1;
    const std::uint64_t low = (place % kPerPower + kPerPower) << shift;
    return low + ((std::uint64_t{1} << shift) >> 1);
}

}  // namespace lockstep::bench
