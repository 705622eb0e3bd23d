// The bytes of the durable log's files, beside the stream's own. docs/wal-format.md is the specification, with a worked
// example.
//
// `hard_state` holds two blocks of HardStateBlock. A segment holds one lap of the ring: a SegmentBlock, two blocks of
// FloorBlock, then the stream's bytes. Each block lies in 4 KiB of its own, so that no write of one touches another.
#pragma once

#include "log/disk/disk.h"
#include "log/entry.h"

#include <lockstep/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace lockstep::log {

inline constexpr std::uint64_t kBlockBytes = 4096;

// -- What a replica must never forget -------------------------------------------------------------------------------

enum class Damage : std::uint8_t {
    none = 0,
    suspect = 1,  // S14: a torn write that was never acknowledged, or rot in one that was
    corrupt = 2,  // S14: rot in what was acknowledged
};

// What was acknowledged and is not there any more: until the chain reaches `end` again, or the protocol has found that
// it does not need to (S14), whoever counts this replica must know.
struct Owed {
    Damage damage = Damage::none;
    Point end;
    Ballot found_in;  // promised when it was found: who leads in a higher one was elected by others' word

    friend bool operator==(const Owed&, const Owed&) = default;
};

struct HardState {
    std::uint64_t cluster_id = 0;
    ReplicaId replica;
    std::uint64_t genesis = 0;
    std::uint64_t ring_bytes = 0;
    Incarnation incarnation;       // of this disk: S12
    Ballot promised;               // never falls: S1
    Incarnation promised_to;       // of the candidate of that ballot
    std::uint64_t era = 1;         // grows when the log starts anew behind a snapshot; segments of another era are none
    Point base;                    // where the log begins
    Position floor;                // at least this much was durable when this was written: finds segments that are gone
    Owed owed;

    friend bool operator==(const HardState&, const HardState&) = default;
};

// -- What a segment says beside its bytes ---------------------------------------------------------------------------

// Written with every batch, into the segment that the batch is in (S14).
struct Floor {
    std::uint64_t generation = 0;  // grows with every floor that is written; the highest counts. 0: none
    Position begin;                // where the batch began
    Point end;                     // everything below is acknowledged as soon as this is durable
    Index committed;               // known to be committed then, in this log

    friend bool operator==(const Floor&, const Floor&) = default;
};

struct SegmentHeader {
    std::uint64_t cluster_id = 0;
    ReplicaId replica;
    std::uint64_t ring_bytes = 0;
    std::uint64_t era = 0;
    Position first;  // of the lap
    Point start;     // of the first entry in it: behind `first` only where the log begins in this lap

    friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

// -- The same as bytes ----------------------------------------------------------------------------------------------

struct PointBlock {
    std::uint64_t index, position, checksum, ballot, timestamp_ns;
};

struct HardStateBlock {
    static constexpr std::uint64_t kMagic = 0x3145'5441'5453'4b4c;  // "LKSTATE1"
    std::uint64_t magic, sequence;
    std::uint64_t cluster_id, replica, genesis, ring_bytes, incarnation, promised, promised_to, era;
    PointBlock base;
    std::uint64_t floor, damage;
    PointBlock owed;
    std::uint64_t found_in;
    std::uint64_t checksum;
};

struct SegmentBlock {
    static constexpr std::uint64_t kMagic = 0x3154'4d47'4553'4b4c;  // "LKSEGMT1"
    std::uint64_t magic;
    std::uint64_t cluster_id, replica, ring_bytes, era, first;
    PointBlock start;
    std::uint64_t checksum;
};

struct FloorBlock {
    static constexpr std::uint64_t kMagic = 0x3152'4f4f'4c46'4b4c;  // "LKFLOOR1"
    std::uint64_t magic;
    std::uint64_t cluster_id, era, first, generation, begin;
    PointBlock end;
    std::uint64_t committed;
    std::uint64_t checksum;
};

// One sector each: a disk writes it whole or not at all.
static_assert(sizeof(HardStateBlock) == 24 * 8);
static_assert(sizeof(SegmentBlock) == 12 * 8);
static_assert(sizeof(FloorBlock) == 13 * 8);
static_assert(std::has_unique_object_representations_v<FloorBlock>, "every byte is written and hashed");

// Sealed: with its checksum.
HardStateBlock block_of(const HardState& state, std::uint64_t sequence);
SegmentBlock block_of(const SegmentHeader& header);
FloorBlock block_of(const Floor& floor, std::uint64_t cluster_id, std::uint64_t era, Position first);

// Nothing where the checksum is wrong or a field cannot be.
struct NumberedHardState {
    HardState state;
    std::uint64_t sequence = 0;
};
std::optional<NumberedHardState> hard_state_of(BytesView bytes);
std::optional<SegmentHeader> segment_header_of(BytesView bytes);
struct PlacedFloor {
    Floor floor;
    std::uint64_t cluster_id = 0;
    std::uint64_t era = 0;
    Position first;
};
std::optional<PlacedFloor> floor_of(BytesView bytes);

// -- Places ---------------------------------------------------------------------------------------------------------

inline constexpr std::uint64_t kHardStateBytes = 2 * kBlockBytes;
constexpr std::uint64_t hard_state_offset(std::uint64_t sequence) { return sequence % 2 * kBlockBytes; }

inline constexpr std::uint64_t kSegmentDataOffset = 3 * kBlockBytes;
constexpr std::uint64_t floor_offset(std::uint64_t generation) { return (1 + generation % 2) * kBlockBytes; }
constexpr std::uint64_t segment_bytes(std::uint64_t ring_bytes) { return kSegmentDataOffset + ring_bytes; }

inline const FileName kHardStateName{"hard_state"};
inline const FileName kNewHardStateName{"hard_state.new"};
inline const FileName kSpareName{"spare"};
inline const FileName kNewSpareName{"spare.new"};

// "wal-00000001-0000000004000000": the era, and the first position of the lap.
FileName segment_name(std::uint64_t era, Position first);
struct SegmentName {
    std::uint64_t era = 0;
    Position first;
};
std::optional<SegmentName> parse_segment_name(const FileName& name);

}  // namespace lockstep::log
