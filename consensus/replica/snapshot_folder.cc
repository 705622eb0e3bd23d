#include "consensus/replica/snapshot_folder.h"

#include <utility>

namespace lockstep::replica {

Result<std::unique_ptr<SnapshotFolder>> SnapshotFolder::open(const std::string& folder, bool none_counts) {
    auto disk = log::PosixDisk::open(folder);
    if (!disk) return std::move(disk).error();
    std::unique_ptr<SnapshotFolder> opened(new SnapshotFolder(std::move(disk).value()));
    if (auto loaded = opened->store_.load(none_counts); !loaded) return std::move(loaded).error();
    return opened;
}

}  // namespace lockstep::replica
