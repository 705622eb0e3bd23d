#include "consensus/replica/transfer.h"

#include "log/check.h"
#include "transport/types.h"

#include <cstring>
#include <string>
#include <type_traits>

namespace lockstep::replica {

namespace {

// No Protobuf message begins with this byte: there is no wire type 7.
constexpr std::uint8_t kMark = 0x07;

struct PointBlock {
    std::uint64_t index, position, checksum, ballot, timestamp_ns;
};

struct Block {
    std::uint8_t mark, kind;
    std::uint16_t reserved;
    std::uint32_t bytes;
    std::uint64_t genesis;
    PointBlock commit;
    std::uint64_t at, most;
    PointBlock snapshot;
    std::uint64_t snapshot_bytes, snapshot_digest, offset;
};
static_assert(sizeof(Block) == 17 * 8);
static_assert(std::has_unique_object_representations_v<Block>);
static_assert(sizeof(Block) + Transfer::kMaxPieceBytes <= transport::kMaxMessageBytes);

PointBlock block_of(const log::Point& point) {
    return {point.index.value, point.position.value, point.checksum, point.ballot.value, point.timestamp_ns};
}

log::Point point_of(const PointBlock& block) {
    return {{block.index}, {block.position}, block.checksum, {block.ballot}, block.timestamp_ns};
}

Error refusal(const std::string& found, const std::string& allowed) {
    return Error("transfer message: " + found + ": " + allowed);
}

}  // namespace

bool is_transfer(std::span<const std::byte> bytes) { return !bytes.empty() && bytes[0] == std::byte{kMark}; }

void encode(const Transfer& transfer, std::vector<std::byte>& out) {
    LOCKSTEP_CHECK_OP(transfer.bytes.size(), <=, Transfer::kMaxPieceBytes);
    const Block block{.mark = kMark,
                      .kind = static_cast<std::uint8_t>(transfer.kind),
                      .reserved = 0,
                      .bytes = static_cast<std::uint32_t>(transfer.bytes.size()),
                      .genesis = transfer.genesis,
                      .commit = block_of(transfer.commit),
                      .at = transfer.at.value,
                      .most = transfer.most,
                      .snapshot = block_of(transfer.snapshot.at),
                      .snapshot_bytes = transfer.snapshot.bytes,
                      .snapshot_digest = transfer.snapshot.digest,
                      .offset = transfer.offset};
    out.resize(sizeof block + transfer.bytes.size());
    std::memcpy(out.data(), &block, sizeof block);
    if (!transfer.bytes.empty()) std::memcpy(out.data() + sizeof block, transfer.bytes.data(), transfer.bytes.size());
}

Result<Transfer> decode_transfer(std::span<const std::byte> bytes) {
    using std::to_string;
    Block block;
    if (bytes.size() < sizeof block)
        return refusal(to_string(bytes.size()) + " bytes", "at least " + to_string(sizeof block));
    std::memcpy(&block, bytes.data(), sizeof block);
    const BytesView data = bytes.subspan(sizeof block);
    if (block.mark != kMark) return refusal("its first byte is " + to_string(block.mark), "7");
    if (block.kind < 1 || block.kind > 3)
        return refusal("its kind is " + to_string(block.kind), "1 to 3; does the sender run a newer version?");
    if (block.bytes != data.size())
        return refusal("it names " + to_string(block.bytes) + " bytes of data", "it has " + to_string(data.size()));
    if (data.size() > Transfer::kMaxPieceBytes)
        return refusal(to_string(data.size()) + " bytes of data", "at most " + to_string(Transfer::kMaxPieceBytes));
    for (const std::uint64_t position : {block.commit.position, block.snapshot.position})
        if (position % log::kEntryAlignment != 0)
            return refusal("a point at " + to_string(position), "points are at multiples of 64");
    if (block.snapshot.index != 0 && block.offset > block.snapshot_bytes)
        return refusal("offset " + to_string(block.offset), "at most the snapshot's bytes, " +
                                                                to_string(block.snapshot_bytes));
    return Transfer{.kind = static_cast<Transfer::Kind>(block.kind),
                    .genesis = block.genesis,
                    .commit = point_of(block.commit),
                    .at = {block.at},
                    .most = block.most,
                    .snapshot = {point_of(block.snapshot), block.snapshot_bytes, block.snapshot_digest},
                    .offset = block.offset,
                    .bytes = data};
}

}  // namespace lockstep::replica
