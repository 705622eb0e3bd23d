// Memory as large as a ring: no page of it exists before it is used, or `populate` asks for all.
#pragma once

#include <lockstep/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lockstep::replica {

class MappedMemory {
 public:
    static Result<MappedMemory> map(std::uint64_t bytes);
    MappedMemory(MappedMemory&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    MappedMemory& operator=(MappedMemory&&) = delete;
    ~MappedMemory();
    // For memory that is used all the time: nobody waits for a page of it later.
    void populate();
    // Zeroed, page aligned.
    std::span<std::byte> span() const { return {memory_, bytes_}; }

 private:
    MappedMemory(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}
    std::byte* memory_;
    std::uint64_t bytes_;
};

}  // namespace lockstep::replica
