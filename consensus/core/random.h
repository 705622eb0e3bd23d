// Numbers from a seed: the core has no random source of its own.
#pragma once

#include <cstdint>

namespace lockstep::core {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): small, and good enough to spread retries.
class Random {
 public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // From 0 to bound - 1; bound is not 0.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
    std::uint64_t state_;
};

}  // namespace lockstep::core
