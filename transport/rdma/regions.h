// What of this replica's memory can be reached by whom. Rights hang on protection domains: a key is of use only through
// a queue pair of its own domain. So no control pair can write the ring, and no peer another peer's slot.
//
//   lane domain         ring and probe line: remote write          the incoming lane's queue pair
//   a peer's domain     ring: remote read; board: remote read;     the peer's control pairs, the lane to it (which
//                       its report slot: remote write              gives the peer no right at all)
#pragma once

#include "transport/link/memory.h"
#include "transport/rdma/device.h"
#include "transport/rdma/verbs.h"
#include "transport/types.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::transport::rdma {

// A report as it lies in a slot. The checksum tells a whole one from a torn one.
struct alignas(128) Slot {
    Report report;
    std::uint64_t writer = 0;    // incarnation of the life that wrote it
    std::uint64_t checksum = 0;  // of the above

    void seal();
    bool whole() const;
};
static_assert(sizeof(Slot) == 128);
inline constexpr std::size_t kSlotBytes = sizeof(Report) + 2 * sizeof(std::uint64_t);  // that are written

// Where a range of memory is, for a peer.
struct RemoteRange {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
};

RemoteRange range_of(const Region& region);

// Shared pages beside the ring: the board, the slots, and what reads arrive in. Not inherited by child processes.
class SidePages {
 public:
    static Result<SidePages> map(std::size_t peers);
    SidePages(SidePages&& other) noexcept;
    ~SidePages();

    // Written word by word, so that a reader in this process sees no torn word; a peer's read can be torn (F6).
    void publish(const Board& board);
    std::span<std::byte> board() const { return {base_, sizeof(Board)}; }
    Slot* slot(std::size_t peer) const;
    // The peer's own: a board that was read, a report to be written, a piece of a ring that was read.
    std::span<std::byte> read_board(std::size_t peer) const;
    Slot* report(std::size_t peer) const;
    std::span<std::byte> piece(std::size_t peer) const;

    static constexpr std::size_t kPieceBytes = 256 * 1024;

 private:
    SidePages(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

    std::byte* base_;
    std::size_t bytes_;
};

struct PeerRegions {
    ReplicaId peer;
    Domain domain;
    Region ring;         // remote read; also what lanes to the peer send from
    Region board;        // remote read
    Region slot;         // remote write
    Region own;          // local: read_board, report, piece
};

struct Regions {
    // Registers all. The error says how much memory must be lockable, and how to raise the limit.
    static Result<Regions> make(Device& device, const link::RingMemory& memory, const SidePages& pages,
                                const std::vector<ReplicaId>& peers);

    Domain lane_domain;
    Region lane_ring;
    std::vector<PeerRegions> peers;
};

// Bytes that registering takes of the memory-lock limit, for a group of so many peers: each registration counts.
std::uint64_t lockable_bytes_needed(std::uint64_t ring_bytes, std::size_t peers);

}  // namespace lockstep::transport::rdma
