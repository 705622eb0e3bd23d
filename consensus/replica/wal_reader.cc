#include "consensus/replica/wal_reader.h"

#include "log/wal/format.h"

#include <utility>

namespace lockstep::replica {

namespace {

constexpr log::FileHandle kReadingFile = 6;

// A file that is gone, or holds something else by now, was released meanwhile: whoever asked finds that what it gets
// does not verify, and asks again.
std::vector<std::byte> read_segment(log::Disk& disk, const log::FileName& name, std::uint64_t offset,
                                    std::uint64_t bytes) {
    std::vector<std::byte> into(bytes);
    std::uint64_t got = 0;
    if (disk.perform(log::DiskOperation::open(kReadingFile, name)))
        if (const auto read = disk.read(kReadingFile, offset, into)) got = read.value();
    (void)disk.perform(log::DiskOperation::close(kReadingFile));
    into.resize(got);
    return into;
}

}  // namespace

Position WalReader::begin() const { return storage_.begin(); }

void WalReader::read(ReplicaId peer, Position at, std::uint64_t bytes) {
    const log::HardState& hard = storage_.wal().kept();
    const Position first{at.value & ~(hard.ring_bytes - 1)};
    background_.run([shared = shared_, &disk = disk_, peer, at, bytes, name = log::segment_name(hard.era, first),
                     offset = log::kSegmentDataOffset + (at - first)] {
        LogBytes answer{peer, at, read_segment(disk, name, offset, bytes)};
        {
            const std::lock_guard lock(shared->mutex);
            shared->read.push_back(std::move(answer));
        }
        shared->wake();
    });
}

void WalReader::take(std::vector<LogBytes>& read) {
    const std::lock_guard lock(shared_->mutex);
    for (LogBytes& one : shared_->read) read.push_back(std::move(one));
    shared_->read.clear();
}

}  // namespace lockstep::replica
