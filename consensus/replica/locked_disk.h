// A disk for two threads.
#pragma once

#include "log/disk/disk.h"

#include <mutex>

namespace lockstep::replica {

// Each operation for itself has the disk alone; a file handle belongs to one thread.
class LockedDisk final : public log::Disk {
 public:
    explicit LockedDisk(log::Disk& disk) : disk_(disk) {}

    Result<void> perform(const log::DiskOperation& operation) override {
        const std::lock_guard lock(mutex_);
        return disk_.perform(operation);
    }
    Result<std::uint64_t> read(log::FileHandle file, std::uint64_t offset, std::span<std::byte> into) override {
        const std::lock_guard lock(mutex_);
        return disk_.read(file, offset, into);
    }
    void will_read(log::FileHandle file, std::uint64_t offset, std::uint64_t bytes) override {
        const std::lock_guard lock(mutex_);
        disk_.will_read(file, offset, bytes);
    }
    Result<std::vector<log::FileInfo>> list() override {
        const std::lock_guard lock(mutex_);
        return disk_.list();
    }

 private:
    log::Disk& disk_;
    std::mutex mutex_;
};

}  // namespace lockstep::replica
