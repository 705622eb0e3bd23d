// What a replica publishes for its peers to reach: the ring with its probe line, and the board. Two threads touch it,
// the protocol thread and the acceptor thread.
#pragma once

#include "transport/types.h"

#include <lockstep/result.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::transport::link {

enum class Pages : std::uint8_t {
    plain,        // put together into huge ones where the system does so by itself
    huge_if_any,  // huge ones if the system has enough set aside: a card finds its way through fewer of them
};

// The ring and its probe line: aligned to 2 MiB, zeroed, not inherited by child processes.
class RingMemory {
 public:
    // Error: `ring_bytes` is no power of two of at least a page, or the system has no memory for it.
    static Result<RingMemory> map(std::uint64_t ring_bytes, Pages pages = Pages::plain);
    RingMemory(RingMemory&& other) noexcept;
    RingMemory& operator=(RingMemory&&) = delete;
    ~RingMemory();

    std::span<std::byte> ring() const { return {base_, static_cast<std::size_t>(ring_bytes_)}; }
    std::span<std::byte> both() const { return {base_, static_cast<std::size_t>(ring_bytes_ + kProbeLineBytes)}; }
    bool huge() const { return huge_; }
    std::span<std::byte> probe_line() const { return {base_ + ring_bytes_, kProbeLineBytes}; }
    // The ring's bytes at [at, at + bytes), which do not cross its end.
    std::span<std::byte> range(Position at, std::uint64_t bytes) const {
        return ring().subspan(at.value & (ring_bytes_ - 1), bytes);
    }

 private:
    RingMemory(void* mapping, std::size_t mapped_bytes, std::byte* base, std::uint64_t ring_bytes, bool huge);

    void* mapping_;  // of mapped_bytes_, around the ring
    std::size_t mapped_bytes_;
    std::byte* base_;
    std::uint64_t ring_bytes_;
    bool huge_;
};

// Copies ring bytes that may be changing meanwhile: what arrives can be torn (F6), and is checked by who asked for it.
// The one place where a data race is meant to be; ThreadSanitizer does not look in here.
void copy_torn(std::span<std::byte> to, std::span<const std::byte> from);

// The published board: written by the protocol thread, read by the acceptor thread, neither waits for the other.
class BoardCell {
 public:
    void publish(const Board& board);
    // Torn only if publishes kept coming at every retry; the board's own checksum tells (F6).
    Board read() const;

 private:
    static constexpr std::size_t kWords = sizeof(Board) / sizeof(std::uint64_t);

    // The newest board is in slot `published_ % 2`; the next one goes to the other slot, so that a writer that is held
    // up in the middle leaves the newest one whole.
    std::atomic<std::uint64_t> published_{0};
    std::array<std::array<std::atomic<std::uint64_t>, kWords>, 2> slots_{};
};

}  // namespace lockstep::transport::link
