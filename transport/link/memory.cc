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

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

void* map(std::size_t bytes, int flags) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
}

// Takes the memory now, not page by page under the first lap of writes.
void populate(std::byte* memory, std::size_t bytes) {
    if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return;
    // A kernel before 5.14: a write into every page does the same.
    for (std::size_t at = 0; at < bytes; at += page_bytes())
        *const_cast<volatile std::byte*>(memory + at) = std::byte{0};
}

}  // namespace

Result<RingMemory> RingMemory::map(std::uint64_t ring_bytes, Pages pages) {
    if (!std::has_single_bit(ring_bytes) || ring_bytes < page_bytes() || ring_bytes > std::uint64_t{1} << 40)
        return Error("ring_bytes " + std::to_string(ring_bytes) + ": a power of two from " +
                     std::to_string(page_bytes()) + " on is needed");
    // The probe line lies in a page behind the ring; the rest is so that the ring can start where a huge page can.
    const std::size_t bytes = ring_bytes + kHugePageBytes;
    void* mapping = MAP_FAILED;
    if (pages == Pages::huge_if_any && ring_bytes >= kHugePageBytes)
        mapping = link::map(bytes, MAP_SHARED | MAP_POPULATE | MAP_HUGETLB | MAP_HUGE_2MB);
    const bool huge = mapping != MAP_FAILED;
    const std::size_t mapped_bytes = huge ? bytes : bytes + kHugePageBytes;
    if (!huge) mapping = link::map(mapped_bytes, MAP_PRIVATE | MAP_NORESERVE);
    if (mapping == MAP_FAILED)
        return Error("cannot map a ring of " + std::to_string(ring_bytes) + " bytes: " + std::strerror(errno) +
                     ": choose a smaller ring_bytes or free memory");
    const auto address = reinterpret_cast<std::uintptr_t>(mapping);
    const std::uintptr_t start = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    RingMemory memory(mapping, mapped_bytes, static_cast<std::byte*>(mapping) + (start - address), ring_bytes, huge);
    // A child process has no business in the ring, and must not keep its pages alive.
    madvise(memory.base_, bytes, MADV_DONTFORK);
    if (huge) return memory;
    // Huge pages spare address translations, and make a process's end quick: the system closes the sockets of a dead
    // process only after it has freed its memory, which takes milliseconds in small pages, and until then no peer can
    // know of the death. Where the system has none, small pages do the same more slowly.
    madvise(memory.base_, ring_bytes, MADV_HUGEPAGE);
    populate(memory.base_, ring_bytes + page_bytes());
    return memory;
}

RingMemory::RingMemory(void* mapping, std::size_t mapped_bytes, std::byte* base, std::uint64_t ring_bytes, bool huge)
    : mapping_(mapping), mapped_bytes_(mapped_bytes), base_(base), ring_bytes_(ring_bytes), huge_(huge) {}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), mapped_bytes_(other.mapped_bytes_), base_(other.base_),
      ring_bytes_(other.ring_bytes_), huge_(other.huge_) {}

RingMemory::~RingMemory() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
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
