// Writes and a sync that the kernel performs by itself, in order, while nobody waits: io_uring, by liburing.
#pragma once

#include "log/disk/disk.h"
#include "log/disk/posix_disk.h"

#include <lockstep/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace lockstep::log {

// One job at a time. For one thread, which none of its calls blocks but the destructor.
class DiskQueue {
 public:
    // Null where there is none: this was built without liburing, the kernel is older than 5.17, or does not allow it to
    // this process (a container's filter). `wakes` is an eventfd, which the kernel writes when a job has ended.
    // Both outlive this.
    static std::unique_ptr<DiskQueue> make(PosixDisk& disk, int wakes);
    // Waits for the job that was begun.
    ~DiskQueue();
    DiskQueue(const DiskQueue&) = delete;
    DiskQueue& operator=(const DiskQueue&) = delete;

    // Begins these operations, each when the one before it has succeeded. They, their data and the disk's files stand
    // until `ended` says so. False, and nothing is begun, where one is neither write nor sync, or a write is
    // larger than 1 GiB, or the kernel takes no more.
    bool begin(std::span<const DiskOperation> operations);

    enum class Ended : std::uint8_t {
        done,
        failed,      // see `error`
        unfinished,  // a write was cut short or put off, and nothing behind it begun: all are to be performed anew
    };
    // How the job ended; nothing while it is under way. Once for each.
    std::optional<Ended> ended();
    // Of the last job that failed: as PosixDisk says it.
    const Error& error() const { return *error_; }

 private:
    struct Ring;

    explicit DiskQueue(PosixDisk& disk, std::unique_ptr<Ring> ring);
    void take_completion();
    Ended judge();

    PosixDisk& disk_;
    const std::unique_ptr<Ring> ring_;
    std::span<const DiskOperation> job_;
    std::optional<Error> error_;
};

}  // namespace lockstep::log
