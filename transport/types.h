// The plain data that crosses the fabric: what the protocol core may know of a transport.
#pragma once

#include <lockstep/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::transport {

// Bytes that follow the ring in its memory and belong to it: the line that probes write.
inline constexpr std::uint64_t kProbeLineBytes = 64;
// The largest control message, in bytes.
inline constexpr std::size_t kMaxMessageBytes = 64 * 1024;
// The largest single ring write or ring read, in bytes.
inline constexpr std::uint64_t kMaxTransferBytes = std::uint64_t{1} << 20;
// Writes and probes that may be unfinished on one lane; one more is `not posted`.
inline constexpr std::size_t kMaxUnfinishedWrites = 64;

// Names an outgoing lane. Chosen by the caller, never used twice in a process' life (F5).
struct LaneId {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(LaneId, LaneId) = default;
    constexpr explicit operator bool() const { return value != 0; }
};

// Names a read, likewise.
struct ReadId {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(ReadId, ReadId) = default;
};

// What the holder of a lane needs to reach it: opaque to the protocol, which carries it in the answer to a prepare.
struct LaneAddress {
    static constexpr std::size_t kMaxBytes = 64;
    std::array<std::byte, kMaxBytes> bytes{};
    std::uint8_t size = 0;
    friend bool operator==(const LaneAddress&, const LaneAddress&) = default;
};

// What a replica publishes of itself.
struct Board {
    std::uint64_t heartbeats = 0;      // rises with every loop of real progress
    Ballot promised;
    Ballot leading;                    // the ballot it leads in and is fit to lead in; 0 else
    Position applied;
    Position durable;
    Index committed;                   // the highest certified commit ...
    std::uint64_t commit_checksum = 0; // ... and the checksum of the entry there
    std::uint64_t checksum = 0;        // over the rest: a board read can be torn (F6); see seal() and intact()

    void seal();
    bool intact() const;
};

// One replica's word to another, about the lane between them: the newest of (ballot, open number, sequence) wins.
// A leader reports its commit to a follower; a follower reports what it consumed (and made durable) to its leader.
struct Report {
    Ballot ballot;
    Incarnation incarnation;           // of the writer
    std::uint64_t open_number = 0;
    std::uint64_t sequence = 0;        // rises with every report of the writer
    Position consumed;
    Position durable;
    Index committed;
    std::uint64_t commit_checksum = 0;
};

}  // namespace lockstep::transport
