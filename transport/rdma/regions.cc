#include "transport/rdma/regions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>
#include <xxhash.h>

namespace lockstep::transport::rdma {
namespace {

constexpr std::size_t kPageBytes = 4096;
// Board and slots first, a page each; then per peer a page of small things and a piece.
constexpr std::size_t kSharedBytes = 2 * kPageBytes + 8 * kPageBytes;
constexpr std::size_t kSlotsAt = kPageBytes;
constexpr std::size_t kOwnBytes = kPageBytes + SidePages::kPieceBytes;
constexpr std::size_t kReportAt = 1024;  // in a peer's small page
static_assert(kSlotsAt + 255 * sizeof(Slot) <= kSharedBytes);

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

struct Registration {
    ibv_pd* domain;
    std::span<std::byte> memory;
    unsigned rights;
};

// Error: an errno.
Region registered(const Registration& what) {
    // Never IBV_ACCESS_RELAXED_ORDERING: writes of a lane land in the order posted (F1).
    return Region(ibv_reg_mr(what.domain, what.memory.data(), what.memory.size(), static_cast<int>(what.rights)));
}

Error no_memory_to_lock(int error, std::uint64_t needed) {
    std::string text = "cannot register memory: " + std::string(std::strerror(error));
    rlimit limit{};
    if (error != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return Error(text);
    text += ": " + mebibytes(needed) + " must be lockable, and the limit is ";
    text += limit.rlim_cur == RLIM_INFINITY ? "none: the machine is short of memory" : mebibytes(limit.rlim_cur);
    return Error(text + ": raise it with LimitMEMLOCK=infinity in the service's unit, with \"memlock unlimited\" in"
                        " /etc/security/limits.conf, or with \"ulimit -l unlimited\"; or choose a smaller ring_bytes");
}

}  // namespace

void Slot::seal() { checksum = XXH3_64bits(this, offsetof(Slot, checksum)); }
bool Slot::whole() const { return checksum == XXH3_64bits(this, offsetof(Slot, checksum)); }

RemoteRange range_of(const Region& region) {
    return {reinterpret_cast<std::uint64_t>(region->addr), region->rkey};
}

Result<SidePages> SidePages::map(std::size_t peers) {
    const std::size_t bytes = kSharedBytes + peers * kOwnBytes;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) return Error("cannot map memory for peers' reports: " + std::string(std::strerror(errno)));
    madvise(base, bytes, MADV_DONTFORK);
    return SidePages(static_cast<std::byte*>(base), bytes);
}

SidePages::SidePages(SidePages&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

SidePages::~SidePages() {
    if (base_ != nullptr) munmap(base_, bytes_);
}

void SidePages::publish(const Board& board) {
    constexpr std::size_t kWords = sizeof(Board) / sizeof(std::uint64_t);
    std::array<std::uint64_t, kWords> words;
    std::memcpy(words.data(), &board, sizeof board);
    auto* to = reinterpret_cast<std::uint64_t*>(base_);
    for (std::size_t i = 0; i < kWords; ++i) std::atomic_ref(to[i]).store(words[i], std::memory_order_release);
}

Slot* SidePages::slot(std::size_t peer) const { return reinterpret_cast<Slot*>(base_ + kSlotsAt) + peer; }

std::span<std::byte> SidePages::read_board(std::size_t peer) const {
    return {base_ + kSharedBytes + peer * kOwnBytes, sizeof(Board)};
}

Slot* SidePages::report(std::size_t peer) const {
    return reinterpret_cast<Slot*>(base_ + kSharedBytes + peer * kOwnBytes + kReportAt);
}

std::span<std::byte> SidePages::piece(std::size_t peer) const {
    return {base_ + kSharedBytes + peer * kOwnBytes + kPageBytes, kPieceBytes};
}

Result<Regions> Regions::make(Device& device, const link::RingMemory& memory, const SidePages& pages,
                              const std::vector<ReplicaId>& peers) {
    const std::uint64_t needed = lockable_bytes_needed(memory.ring().size(), peers.size());
    Regions made;
    made.lane_domain.reset(ibv_alloc_pd(device.context()));
    if (!made.lane_domain) return verbs_error("make a protection domain", errno);
    made.lane_ring =
        registered({made.lane_domain.get(), memory.both(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
    if (!made.lane_ring) return no_memory_to_lock(errno, needed);
    for (std::size_t i = 0; i < peers.size(); ++i) {
        PeerRegions& peer = made.peers.emplace_back();
        peer.peer = peers[i];
        peer.domain.reset(ibv_alloc_pd(device.context()));
        if (!peer.domain) return verbs_error("make a protection domain", errno);
        ibv_pd* domain = peer.domain.get();
        const std::span<std::byte> slot(reinterpret_cast<std::byte*>(pages.slot(i)), sizeof(Slot));
        peer.ring = registered({domain, memory.ring(), IBV_ACCESS_REMOTE_READ});
        if (peer.ring) peer.board = registered({domain, pages.board(), IBV_ACCESS_REMOTE_READ});
        if (peer.board) peer.slot = registered({domain, slot, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
        if (peer.slot)
            peer.own = registered({domain, {pages.read_board(i).data(), kOwnBytes}, IBV_ACCESS_LOCAL_WRITE});
        if (!peer.own) return no_memory_to_lock(errno, needed);
    }
    return made;
}

std::uint64_t lockable_bytes_needed(std::uint64_t ring_bytes, std::size_t peers) {
    // The ring once for the lane and once for each peer; queues of the device come to less than this rest.
    constexpr std::uint64_t kRest = std::uint64_t{8} << 20;
    return (ring_bytes + kPageBytes) * (1 + peers) + kSharedBytes * (1 + peers) + kOwnBytes * peers + kRest;
}

}  // namespace lockstep::transport::rdma
