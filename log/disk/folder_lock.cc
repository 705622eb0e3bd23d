#include "log/disk/folder_lock.h"

#include "log/disk/posix_disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace lockstep::log {

namespace {

std::string read_all(int file) {
    std::array<char, 512> text;
    const ssize_t got = ::pread(file, text.data(), text.size(), 0);
    return got <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

Result<void> write_all(int file, const std::string& text, const std::string& path) {
    if (::ftruncate(file, 0) != 0) return disk_error("empty " + path, errno);
    if (::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return disk_error("write " + path, errno);
    if (::fsync(file) != 0) return disk_error("fsync " + path, errno);
    return {};
}

Result<void> sync_folder(const std::string& folder) {
    auto disk = PosixDisk::open(folder);
    if (!disk) return std::move(disk).error();
    return disk.value()->perform(DiskOperation::sync_folder());
}

}  // namespace

std::string FolderLock::machine_id() {
    const int file = ::open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::string id = read_all(file);
    ::close(file);
    while (!id.empty() && (id.back() == '\n' || id.back() == ' ')) id.pop_back();
    return id;
}

Result<FolderLock> FolderLock::take(const std::string& folder, const std::string& machine) {
    return take(folder, machine, false);
}

Result<FolderLock> FolderLock::adopt(const std::string& folder, const std::string& machine) {
    return take(folder, machine, true);
}

Result<FolderLock> FolderLock::take(const std::string& folder, const std::string& machine, bool adopt) {
    const std::string path = folder + "/lock";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return disk_error("open " + path, errno);
    FolderLock lock(file);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return disk_error("lock " + path, errno);
        return Error("the data folder " + folder + " is in use by another process: two replicas cannot share one; "
                     "end the other, or name another folder");
    }
    struct stat about{};
    if (::fstat(file, &about) != 0) return disk_error("look at " + path, errno);
    const std::string here = "lockstep data folder 1\nmachine: " + machine + "\ninode: " +
                             std::to_string(about.st_ino) + "\n";
    const std::string made = read_all(file);
    if (made == here) return lock;
    if (!made.empty() && !adopt)
        return Error("the data folder " + folder + " was made elsewhere (its file lock does not name this machine and "
                     "itself): a copy, or a backup, may promise and vote against what its original has done since. If "
                     "the original is gone for good and this is its newest state, say so with: lockstep log adopt " +
                     folder);
    if (auto written = write_all(file, here, path); !written) return std::move(written).error();
    if (auto synced = sync_folder(folder); !synced) return std::move(synced).error();
    return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace lockstep::log
