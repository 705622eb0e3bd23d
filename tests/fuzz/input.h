// A fuzzer's bytes as values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace lockstep {

// Takes values off the front of the input; zeros when it ends.
struct Input {
    std::span<const std::byte> bytes;

    template <class T>
    T take() {
        T value{};
        const std::size_t size = std::min(sizeof value, bytes.size());
        if (size != 0) std::memcpy(&value, bytes.data(), size);
        bytes = bytes.subspan(size);
        return value;
    }
};

}  // namespace lockstep
