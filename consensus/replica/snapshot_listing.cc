#include "consensus/replica/data_folder.h"
#include "log/disk/posix_disk.h"
#include "log/snapshot/reader.h"

#include <lockstep/snapshots.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

constexpr log::FileHandle kFile = 0;

class Listing {
 public:
    Listing(log::Disk& disk, const ReadSnapshotsOptions& options) : disk_(disk), options_(options) {}

    Result<std::vector<SnapshotFile>> read_all() {
        auto files = disk_.list();
        if (!files) return std::move(files).error();
        std::erase_if(files.value(), [](const log::FileInfo& file) { return !log::names_snapshot(file.name); });
        for (const log::FileInfo& file : files.value()) total_ += file.bytes;
        std::vector<SnapshotFile> found;
        for (const log::FileInfo& file : files.value()) {
            // Gone since it was listed: a replica removes older ones.
            if (!disk_.perform(log::DiskOperation::open(kFile, file.name)) && !still_there(file.name)) continue;
            auto one = read_one(file);
            if (!one) return std::move(one).error();
            found.push_back(std::move(one).value());
        }
        return found;
    }

 private:
    bool still_there(const log::FileName& name) {
        auto files = disk_.list();
        return !files || std::ranges::find(files.value(), name, &log::FileInfo::name) != files.value().end();
    }

    Result<SnapshotFile> read_one(const log::FileInfo& file) {
        SnapshotFile found{.name = std::string(file.name.view()), .bytes = file.bytes, .index = {}, .position = {},
                           .ballot = {}, .damage = {}};
        std::optional<Error> disk_error;
        auto reader = log::SnapshotReader::open(
            [&](std::uint64_t offset, std::span<std::byte> into) {
                auto got = disk_.read(kFile, offset, into);
                if (!got) disk_error = got.error();
                return got;
            },
            file.bytes);
        if (reader) {
            describe(reader.value(), found);
            if (snapshot_file_name(reader.value().name()) != file.name)
                found.damage = "it holds another one than its name says";
            else if (options_.verify) read_state(reader.value(), found);
        } else {
            found.damage = reader.error().message();
        }
        if (disk_error) return std::move(*disk_error);
        done_ += file.bytes;
        if (options_.progress) options_.progress(done_, total_);
        return found;
    }

    static void describe(const log::SnapshotReader& reader, SnapshotFile& found) {
        const log::SnapshotMeta& meta = reader.meta();
        found.cluster_id = meta.cluster_id;
        found.ring_bytes = meta.ring_bytes;
        found.index = meta.at.index;
        found.position = meta.at.position;
        found.ballot = meta.at.ballot;
        found.timestamp_ns = meta.at.timestamp_ns;
        found.state_bytes = reader.state_bytes();
    }

    void read_state(log::SnapshotReader& reader, SnapshotFile& found) {
        std::vector<std::byte> part(std::size_t{1} << 20);
        for (std::uint64_t read = 0;;) {
            auto got = reader.read(part);
            if (!got) {
                found.damage = got.error().message();
                return;
            }
            if (got.value() == 0) return;
            read += got.value();
            if (options_.progress) options_.progress(done_ + std::min(read, found.bytes), total_);
        }
    }

    log::Disk& disk_;
    const ReadSnapshotsOptions& options_;
    std::uint64_t done_ = 0;
    std::uint64_t total_ = 0;
};

}  // namespace

Result<std::vector<SnapshotFile>> read_snapshots(const std::string& folder, const ReadSnapshotsOptions& options) {
    auto disk = log::PosixDisk::open_for_reading(replica::part_of_data_folder(folder, "snapshots"));
    if (!disk) return std::move(disk).error();
    auto found = Listing(*disk.value(), options).read_all();
    if (!found) return std::move(found).error().within("cannot read the snapshots in " + folder);
    return found;
}

}  // namespace lockstep
