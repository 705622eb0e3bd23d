// What catching up says: the one that lacks something asks for it piece by piece, the other answers; nothing is
// remembered between a piece and the next but by the one that asks, so any of it can be lost, repeated or late (F7).
// Bytes of the log go here, so these are no Protobuf messages: a fixed block, and the bytes behind it.
#pragma once

#include "log/entry.h"
#include "log/snapshot/snapshot.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::replica {

struct Transfer {
    enum class Kind : std::uint8_t {
        ask = 1,         // for what comes behind `commit`: the log at `at`, or `snapshot` at `offset`
        log = 2,         // `bytes` of the log at `at`, below the sender's commit; none: there is no more
        snapshot = 3,    // `bytes` of `snapshot` at `offset`
    };
    Kind kind = Kind::ask;
    std::uint64_t genesis = 0;
    log::Point commit{};         // of the one that asks
    Position at{};
    std::uint64_t most = 0;      // of the log's bytes that the one that asks has room for; 0: it wants a snapshot
    log::SnapshotName snapshot{};  // asking: the one that is under way; the index of its point is 0 if there is none
    std::uint64_t offset = 0;      // asking: what is there of it; all, where all has come and is not what the name says
    BytesView bytes{};           // at most kMaxPieceBytes; belong to who made this

    static constexpr std::uint64_t kMaxPieceBytes = std::uint64_t{48} << 10;
};

// Whether a control message is one of these.
bool is_transfer(std::span<const std::byte> bytes);
// Replaces what `out` holds.
void encode(const Transfer& transfer, std::vector<std::byte>& out);
// The bytes of the transfer are those of `bytes`. Any bytes are safe to pass; the error names the field and what is
// allowed.
Result<Transfer> decode_transfer(std::span<const std::byte> bytes);

}  // namespace lockstep::replica
