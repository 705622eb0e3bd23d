// Any bytes as the files of a log: recovery ends, and takes no entry that does not verify; what it found can be opened,
// and is found again after that.
//
// Input: one byte of options, then edits of the files of a small sound log: which file, where, how many bytes, the
// bytes. Since no fuzzer guesses a checksum, an option seals the blocks anew, and so lets the fuzzer at what is behind.
#include "log/check.h"
#include "log/disk/sim_disk.h"
#include "log/wal/wal.h"
#include "tests/fuzz/input.h"
#include "tests/unit/log/test_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <xxhash.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

using namespace lockstep;
using namespace lockstep::log;

constexpr std::uint64_t kRing = 1024;
constexpr std::uint64_t kGenesis = 0x9e15;
constexpr int kMaxJobs = 1000;

void work(Wal& wal, SimDisk& disk) {
    int jobs = 0;
    while (const DiskJob* const job = wal.next()) {
        wal.finish(perform_all(disk, job->operations()));
        LOCKSTEP_CHECK_OP(++jobs, <, kMaxJobs);
    }
}

HardState first_hard_state() {
    HardState hard;
    hard.cluster_id = 7;
    hard.replica = ReplicaId{1};
    hard.genesis = kGenesis;
    hard.ring_bytes = kRing;
    hard.base.checksum = kGenesis;
    return hard;
}

Result<std::optional<Recovered>> read_back(SimDisk& disk, TestRing& memory) {
    Ring ring = memory.ring();
    Point last;
    RecoverOptions options;
    options.visit = [&](const VerifiedEntry& entry) {
        LOCKSTEP_CHECK_OP(entry.header.index, ==, entry.end.index.value);
        LOCKSTEP_CHECK_OP(entry.end.position.value, >, last.position.value);
        last = entry.end;
    };
    return recover(disk, {7, ReplicaId{1}, kRing}, ring, options);
}

// Three laps of entries, one batch each but for the last.
void make_log(SimDisk& disk) {
    LOCKSTEP_CHECK(create_log(disk, first_hard_state()).ok());
    TestRing memory(kRing);
    auto recovered = read_back(disk, memory);
    LOCKSTEP_CHECK(recovered.ok());
    TestRing copy(kRing, kGenesis);
    TestRing ring(kRing, kGenesis);
    Wal wal(*recovered.value(), copy.ring());
    Point tail = first_hard_state().base;
    const std::vector<std::byte> payload(200, std::byte{0x61});
    while (tail.position.value < 3 * kRing - 300) {
        append(ring, tail, EntryKind::command, Stamp{Ballot{257}, Index{0}, tail.index.value * 1000},
               std::span(payload).first(tail.index.value * 37 % 200));
        LOCKSTEP_CHECK(wal.append(ring, tail.position) == Taken::all);
        if (tail.index.value % 3 == 0) work(wal, disk);
    }
    work(wal, disk);
}

template <class Block>
void seal(std::vector<std::byte>& file, std::uint64_t offset) {
    if (file.size() < offset + sizeof(Block)) return;
    const std::uint64_t checksum = XXH3_64bits(file.data() + offset, offsetof(Block, checksum));
    std::memcpy(file.data() + offset + offsetof(Block, checksum), &checksum, sizeof checksum);
}

void seal_all(std::vector<std::byte>& file, bool hard_state) {
    if (hard_state) {
        seal<HardStateBlock>(file, 0);
        seal<HardStateBlock>(file, kBlockBytes);
    } else {
        seal<SegmentBlock>(file, 0);
        seal<FloorBlock>(file, kBlockBytes);
        seal<FloorBlock>(file, 2 * kBlockBytes);
    }
}

void edit(SimDisk& disk, Input& input, bool sealed) {
    const auto files = disk.list();
    const FileName name = files.value()[input.take<std::uint8_t>() % files.value().size()].name;
    auto bytes = disk.contents(name);
    const std::uint64_t offset = input.take<std::uint16_t>() % (bytes.size() + 1);
    const std::uint64_t length = std::min<std::uint64_t>(input.take<std::uint8_t>(), input.bytes.size());
    if (length == 0) bytes.resize(offset);  // a file cut short
    else bytes.resize(std::max<std::size_t>(bytes.size(), offset + length));
    std::ranges::copy(input.bytes.first(length), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    input.bytes = input.bytes.subspan(length);
    if (sealed) seal_all(bytes, name == kHardStateName);
    disk.put(name, std::move(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    Input input{std::as_bytes(std::span(bytes, count))};
    const bool sealed = (input.take<std::uint8_t>() & 1) != 0;
    SimDisk disk([](std::uint64_t) { return std::uint64_t{0}; });
    make_log(disk);
    for (int edits = 0; edits < 8 && !input.bytes.empty(); ++edits) edit(disk, input, sealed);

    TestRing memory(kRing);
    auto found = read_back(disk, memory);
    if (!found || !found.value()) return 0;
    Recovered recovered = *found.value();
    TestRing copy(kRing, recovered.hard.genesis);
    Wal wal(recovered, copy.ring());
    work(wal, disk);
    if (wal.stopped()) return 0;
    auto again = read_back(disk, memory);
    LOCKSTEP_CHECK(again.ok());
    LOCKSTEP_CHECK(again.value()->end == recovered.end);
    // What is behind damage stays as it is as long as nothing takes its place.
    const bool corrupt = recovered.found == Damage::corrupt;
    LOCKSTEP_CHECK(again.value()->found == Damage::none || corrupt);
    LOCKSTEP_CHECK(again.value()->owed == recovered.owed);
    return 0;
}
