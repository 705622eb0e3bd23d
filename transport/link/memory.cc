#include "transport/link/memory.h"

#include "log/check.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lockstep::transport::link {
namespace {

constexpr int kBoardRetries = 16;

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;

// Populated: the memory is taken now, not page by page under the first lap of writes.
void* map_shared(std::size_t bytes, int more_flags) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE | more_flags, -1, 0);
}

}  // namespace

Result<RingMemory> RingMemory::map(std::uint64_t ring_bytes, Pages pages) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (!std::has_single_bit(ring_bytes) || ring_bytes < page || ring_bytes > std::uint64_t{1} << 40)
        return Error("ring_bytes " + std::to_string(ring_bytes) + ": a power of two from " + std::to_string(page) +
                     " on is needed");
    // The probe line lies in the last page.
    std::size_t bytes = ring_bytes + page;
    void* base = MAP_FAILED;
    const bool may_be_huge = pages == Pages::huge_if_any && ring_bytes >= kHugePageBytes;
    if (may_be_huge) base = map_shared(ring_bytes + kHugePageBytes, MAP_HUGETLB | MAP_HUGE_2MB);
    const bool huge = base != MAP_FAILED;
    if (huge)
        bytes = ring_bytes + kHugePageBytes;
    else
        base = map_shared(bytes, 0);
    if (base == MAP_FAILED)
        return Error("cannot map a ring of " + std::to_string(ring_bytes) + " bytes: " + std::strerror(errno) +
                     ": choose a smaller ring_bytes or free memory");
    // A child process has no business in the ring, and must not keep its pages alive.
    madvise(base, bytes, MADV_DONTFORK);
    return RingMemory(static_cast<std::byte*>(base), ring_bytes, bytes, huge);
}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), ring_bytes_(other.ring_bytes_), mapped_bytes_(other.mapped_bytes_),
      huge_(other.huge_) {}

RingMemory::~RingMemory() {
    if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

__attribute__((no_sanitize("thread"))) void copy_torn(std::span<std::byte> to, std::span<const std::byte> from) {
    LOCKSTEP_CHECK_OP(to.size(), ==, from.size());
    // Loads that the compiler may neither repeat nor leave out, and no memcpy, which ThreadSanitizer would watch.
    const auto* source = reinterpret_cast<const volatile unsigned char*>(from.data());
    auto* target = reinterpret_cast<volatile unsigned char*>(to.data());
    std::size_t done = 0;
    if (reinterpret_cast<std::uintptr_t>(from.data()) % 8 == 0 && reinterpret_cast<std::uintptr_t>(to.data()) % 8 == 0)
        for (; done + 8 <= from.size(); done += 8)
            *reinterpret_cast<volatile std::uint64_t*>(target + done) =
                *reinterpret_cast<const volatile std::uint64_t*>(source + done);
    for (; done < from.size(); ++done) target[done] = source[done];
}

// A sequence lock whose words are atomics themselves: free on x86, and no data race by the letter either.
void BoardCell::publish(const Board& board) {
    std::array<std::uint64_t, kWords> words;
    std::memcpy(words.data(), &board, sizeof board);
    const std::uint64_t next = published_.load(std::memory_order_relaxed) + 1;
    auto& slot = slots_[next % 2];
    for (std::size_t i = 0; i < kWords; ++i) slot[i].store(words[i], std::memory_order_release);
    published_.store(next, std::memory_order_release);
}

Board BoardCell::read() const {
    std::array<std::uint64_t, kWords> words;
    for (int retry = 0; retry < kBoardRetries; ++retry) {
        const std::uint64_t newest = published_.load(std::memory_order_acquire);
        const auto& slot = slots_[newest % 2];
        for (std::size_t i = 0; i < kWords; ++i) words[i] = slot[i].load(std::memory_order_acquire);
        // A word of the slot's next board would have brought along that another was published before it.
        if (published_.load(std::memory_order_relaxed) == newest) break;
    }
    Board board;
    std::memcpy(static_cast<void*>(&board), words.data(), sizeof board);
    return board;
}

}  // namespace lockstep::transport::link
