// Any bytes as the file of a snapshot: reading ends, hands out no state that was not written, and takes a file for
// whole only where it is the one that was written, byte for byte.
//
// Input: one byte of options, then edits of a small sound file: where, how many bytes, the bytes; none cuts it there.
// Since no fuzzer guesses a checksum, an option seals the head, the chunks and the end anew, and so lets the fuzzer at
// what is behind; then a whole file is one that a writer makes of the same head and state.
#include "log/check.h"
#include "log/disk/sim_disk.h"
#include "log/snapshot/reader.h"
#include "log/snapshot/writer.h"
#include "tests/fuzz/input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <xxhash.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

using namespace lockstep;
using namespace lockstep::log;

using Bytes = std::vector<std::byte>;

const FileName kName{"snapshot"};

Bytes write_file(const SnapshotMeta& meta, BytesView state) {
    SimDisk disk([](std::uint64_t) { return std::uint64_t{0}; });
    SnapshotWriter writer(disk, 0);
    LOCKSTEP_CHECK(writer.begin(kName, meta).ok());
    LOCKSTEP_CHECK(writer.write(state).ok());
    LOCKSTEP_CHECK(writer.finish().ok());
    return disk.contents(kName);
}

SnapshotMeta small_meta() {
    return {.cluster_id = 7,
            .genesis = 0x9e15,
            .ring_bytes = 1024,
            .at = {Index{12}, Position{4096}, 0xabcd, Ballot{257}, 5000},
            .config = "voters"};
}

// One chunk and a bit.
Bytes small_state() {
    Bytes state(kSnapshotChunkBytes + 300);
    for (std::size_t at = 0; at < state.size(); ++at) state[at] = static_cast<std::byte>(at * 7 + at / 256);
    return state;
}

template <class Block>
Block block_at(const Bytes& file, std::uint64_t offset) {
    Block block;
    std::memcpy(&block, file.data() + offset, sizeof block);
    return block;
}

void seal(Bytes& file) {
    if (file.size() < snapshot_bytes(0)) return;
    auto head = block_at<SnapshotHeadBlock>(file, 0);
    head.checksum = XXH3_64bits_withSeed(&head, offsetof(SnapshotHeadBlock, checksum), head.genesis);
    std::memcpy(file.data(), &head, sizeof head);
    std::uint64_t seed = head.checksum;
    const std::uint64_t end_at = file.size() - sizeof(SnapshotEndBlock);
    for (std::uint64_t number = 0; chunk_offset(number) + sizeof(ChunkBlock) < end_at; ++number) {
        const std::uint64_t at = chunk_offset(number);
        const std::uint64_t bytes = std::min(kSnapshotChunkBytes, end_at - at - sizeof(ChunkBlock));
        auto chunk = block_at<ChunkBlock>(file, at);
        const std::uint64_t hash = XXH3_64bits_withSeed(file.data() + at + sizeof chunk, bytes, head.genesis);
        const std::uint64_t chained[] = {chunk.magic, chunk.number, chunk.bytes, hash};
        chunk.checksum = XXH3_64bits_withSeed(chained, sizeof chained, seed);
        std::memcpy(file.data() + at, &chunk, sizeof chunk);
        seed = chunk.checksum;
    }
    auto end = block_at<SnapshotEndBlock>(file, end_at);
    end.checksum = XXH3_64bits_withSeed(&end, offsetof(SnapshotEndBlock, checksum), seed);
    std::memcpy(file.data() + end_at, &end, sizeof end);
    end.digest = XXH3_64bits(file.data(), file.size() - sizeof end.digest);
    std::memcpy(file.data() + end_at, &end, sizeof end);
}

void edit(Bytes& file, Input& input) {
    // Near the head or near the end; the state's middle is all alike.
    const auto place = input.take<std::uint16_t>();
    const std::size_t distance = std::min<std::size_t>(file.size(), place & 0x7fff);
    const std::size_t offset = (place & 0x8000) != 0 ? file.size() - distance : distance;
    const std::uint64_t length = std::min<std::uint64_t>(input.take<std::uint8_t>(), input.bytes.size());
    if (length == 0) file.resize(offset);
    else file.resize(std::max<std::size_t>(file.size(), offset + length));
    std::ranges::copy(input.bytes.first(length), file.begin() + static_cast<std::ptrdiff_t>(offset));
    input.bytes = input.bytes.subspan(length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    static const Bytes written = write_file(small_meta(), small_state());
    Input input{std::as_bytes(std::span(bytes, count))};
    const bool sealed = (input.take<std::uint8_t>() & 1) != 0;
    Bytes file = written;
    for (int edits = 0; edits < 8 && !input.bytes.empty(); ++edits) edit(file, input);
    if (sealed) seal(file);

    const auto read_at = [&](std::uint64_t offset, std::span<std::byte> into) -> Result<std::uint64_t> {
        if (offset >= file.size()) return std::uint64_t{0};
        const std::uint64_t got = std::min<std::uint64_t>(into.size(), file.size() - offset);
        std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), got, into.begin());
        return got;
    };
    auto reader = SnapshotReader::open(read_at, file.size());
    if (!reader) return 0;
    Bytes state;
    for (Bytes part(10'000);;) {
        auto got = reader.value().read(part);
        if (!got) return 0;
        if (got.value() == 0) break;
        state.insert(state.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got.value()));
        LOCKSTEP_CHECK_OP(state.size(), <=, file.size());
    }
    // It is whole: no other bytes mean the same.
    LOCKSTEP_CHECK(write_file(reader.value().meta(), state) == file);
    if (!sealed) LOCKSTEP_CHECK(file == written);
    return 0;
}
