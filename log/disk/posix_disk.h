// A folder on a real disk, through POSIX calls.
#pragma once

#include "log/disk/disk.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::log {

class PosixDisk final : public Disk {
 public:
    // The folder is made if it is missing (its parent is not). Files are opened close-on-exec.
    static Result<std::unique_ptr<PosixDisk>> open(const std::string& folder);
    // As `open`, for looking only: the folder must exist, and whatever would change a file fails.
    static Result<std::unique_ptr<PosixDisk>> open_for_reading(const std::string& folder);
    ~PosixDisk() override;

    Result<void> perform(const DiskOperation& operation) override;
    Result<std::uint64_t> read(FileHandle file, std::uint64_t offset, std::span<std::byte> into) override;
    void will_read(FileHandle file, std::uint64_t offset, std::uint64_t bytes) override;
    Result<std::vector<FileInfo>> list() override;

    const std::string& folder() const { return folder_; }
    // Of an open file; -1 of one that is not.
    int descriptor(FileHandle file) const { return files_[file].descriptor; }
    // What `perform` would say of an operation that failed so.
    Error error_of(const DiskOperation& operation, int system_error) const;

 private:
    struct File {
        int descriptor = -1;
        FileName name;
    };

    PosixDisk(std::string folder, int descriptor, bool read_only);
    static Result<std::unique_ptr<PosixDisk>> open(const std::string& folder, bool read_only);
    Result<void> open_file(FileHandle handle, const FileName& name, int flags);
    Result<void> create(const DiskOperation& operation);
    Result<void> write(const DiskOperation& operation);
    Result<void> close(FileHandle handle);
    std::string path(const FileName& name) const;

    std::string folder_;
    int folder_descriptor_;
    bool read_only_;
    std::array<File, kMaxOpenFiles> files_{};
};

// "cannot DO: the system's reason", and what a person can do about it where that is known.
Error disk_error(const std::string& cannot_do, int system_error);

}  // namespace lockstep::log
