#include "log/disk/posix_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lockstep::log {

namespace {

const char* remedy(int system_error) {
    switch (system_error) {
        case ENOSPC: return "free space on its file system, or take snapshots more often, and start the replica again";
        case EDQUOT: return "raise the quota of the replica's user, and start the replica again";
        case EACCES:
        case EPERM: return "let the replica's user own the data folder";
        case EROFS: return "mount the file system for writing; see the kernel's log for why it is not";
        case EIO: return "the disk fails: see the kernel's log, replace the disk, and let the replica come back empty";
        case EMFILE:
        case ENFILE: return "raise the limit of open files";
        case EOPNOTSUPP: return "use a file system that can allocate space ahead, such as ext4 or xfs";
        default: return nullptr;
    }
}

Error bad_handle(const char* what) { return Error(std::string("cannot ") + what + ": no file is open there"); }

}  // namespace

Error disk_error(const std::string& cannot_do, int system_error) {
    std::string text = "cannot " + cannot_do + ": " + std::strerror(system_error);
    if (const char* const advice = remedy(system_error)) text += std::string("; ") + advice;
    return Error(std::move(text));
}

PosixDisk::PosixDisk(std::string folder, int descriptor, bool read_only)
    : folder_(std::move(folder)), folder_descriptor_(descriptor), read_only_(read_only) {}

PosixDisk::~PosixDisk() {
    for (File& file : files_)
        if (file.descriptor >= 0) ::close(file.descriptor);
    ::close(folder_descriptor_);
}

Result<std::unique_ptr<PosixDisk>> PosixDisk::open(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return disk_error("make the folder " + folder, errno);
    return open(folder, false);
}

Result<std::unique_ptr<PosixDisk>> PosixDisk::open_for_reading(const std::string& folder) { return open(folder, true); }

Result<std::unique_ptr<PosixDisk>> PosixDisk::open(const std::string& folder, bool read_only) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return disk_error("open the folder " + folder, errno);
    return std::unique_ptr<PosixDisk>(new PosixDisk(folder, descriptor, read_only));
}

std::string PosixDisk::path(const FileName& name) const { return folder_ + "/" + name.c_str(); }

Result<void> PosixDisk::open_file(FileHandle handle, const FileName& name, int flags) {
    LOCKSTEP_CHECK_OP(handle, <, kMaxOpenFiles);
    if (auto closed = close(handle); !closed) return closed;
    const int descriptor = ::openat(folder_descriptor_, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) return disk_error("open " + path(name), errno);
    files_[handle] = {descriptor, name};
    return {};
}

Result<void> PosixDisk::create(const DiskOperation& operation) {
    if (auto opened = open_file(operation.file, operation.name, O_RDWR | O_CREAT | O_TRUNC); !opened) return opened;
    if (operation.bytes == 0) return {};
    int failed = 0;
    do failed = ::posix_fallocate(files_[operation.file].descriptor, 0, static_cast<off_t>(operation.bytes));
    while (failed == EINTR);
    if (failed != 0)
        return disk_error("allocate " + std::to_string(operation.bytes) + " bytes for " + path(operation.name), failed);
    return {};
}

Result<void> PosixDisk::write(const DiskOperation& operation) {
    const File& file = files_[operation.file];
    if (file.descriptor < 0) return bad_handle("write");
    std::uint64_t done = 0;
    while (done < operation.data.size()) {
        const ssize_t written = ::pwrite(file.descriptor, operation.data.data() + done, operation.data.size() - done,
                                         static_cast<off_t>(operation.offset + done));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return disk_error("write " + path(file.name) + " at " + std::to_string(operation.offset + done),
                              written < 0 ? errno : ENOSPC);
        done += static_cast<std::uint64_t>(written);
    }
    return {};
}

Error PosixDisk::error_of(const DiskOperation& operation, int system_error) const {
    const std::string file = path(files_[operation.file].name);
    if (operation.kind == DiskOperation::Kind::sync) return disk_error("fdatasync " + file, system_error);
    return disk_error("write " + file + " at " + std::to_string(operation.offset), system_error);
}

Result<void> PosixDisk::close(FileHandle handle) {
    File& file = files_[handle];
    const int descriptor = std::exchange(file.descriptor, -1);
    if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR)
        return disk_error("close " + path(file.name), errno);
    return {};
}

Result<void> PosixDisk::perform(const DiskOperation& operation) {
    using Kind = DiskOperation::Kind;
    LOCKSTEP_CHECK_OP(operation.file, <, kMaxOpenFiles);
    if (read_only_ && operation.kind != Kind::open && operation.kind != Kind::close)
        return disk_error(to_string(operation) + " in " + folder_, EROFS);
    switch (operation.kind) {
        case Kind::create: return create(operation);
        case Kind::open: return open_file(operation.file, operation.name, read_only_ ? O_RDONLY : O_RDWR);
        case Kind::write: return write(operation);
        case Kind::sync:
            if (files_[operation.file].descriptor < 0) return bad_handle("fdatasync");
            if (::fdatasync(files_[operation.file].descriptor) != 0) return error_of(operation, errno);
            return {};
        case Kind::rename:
            if (::renameat(folder_descriptor_, operation.name.c_str(), folder_descriptor_, operation.to.c_str()) != 0)
                return disk_error("rename " + path(operation.name) + " to " + operation.to.c_str(), errno);
            return {};
        case Kind::remove:
            if (::unlinkat(folder_descriptor_, operation.name.c_str(), 0) != 0)
                return disk_error("remove " + path(operation.name), errno);
            return {};
        case Kind::sync_folder:
            if (::fsync(folder_descriptor_) != 0) return disk_error("fsync the folder " + folder_, errno);
            return {};
        case Kind::close: return close(operation.file);
    }
    return {};
}

Result<std::uint64_t> PosixDisk::read(FileHandle handle, std::uint64_t offset, std::span<std::byte> into) {
    LOCKSTEP_CHECK_OP(handle, <, kMaxOpenFiles);
    const File& file = files_[handle];
    if (file.descriptor < 0) return bad_handle("read");
    std::uint64_t done = 0;
    while (done < into.size()) {
        const ssize_t got = ::pread(file.descriptor, into.data() + done, into.size() - done,
                                    static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error("read " + path(file.name) + " at " + std::to_string(offset + done), errno);
        if (got == 0) break;
        done += static_cast<std::uint64_t>(got);
    }
    return done;
}

void PosixDisk::will_read(FileHandle handle, std::uint64_t offset, std::uint64_t bytes) {
    LOCKSTEP_CHECK_OP(handle, <, kMaxOpenFiles);
    ::posix_fadvise(files_[handle].descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    POSIX_FADV_WILLNEED);
}

Result<std::vector<FileInfo>> PosixDisk::list() {
    const int descriptor = ::openat(folder_descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const entries = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (entries == nullptr) {
        const int failed = errno;
        if (descriptor >= 0) ::close(descriptor);
        return disk_error("list the folder " + folder_, failed);
    }
    std::vector<FileInfo> found;
    int failed = 0;
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(entries);
        if (entry == nullptr) {
            failed = errno;
            break;
        }
        struct stat about{};
        const std::string_view name = entry->d_name;
        if (name.size() > FileName::kMaxBytes) continue;
        if (::fstatat(folder_descriptor_, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
            continue;
        found.push_back({FileName(name), static_cast<std::uint64_t>(about.st_size)});
    }
    ::closedir(entries);
    if (failed != 0) return disk_error("list the folder " + folder_, failed);
    std::ranges::sort(found, {}, [](const FileInfo& file) { return file.name.view(); });
    return found;
}

}  // namespace lockstep::log
