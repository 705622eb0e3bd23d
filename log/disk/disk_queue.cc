#include "log/disk/disk_queue.h"

#include "log/check.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace lockstep::log {

namespace {

constexpr unsigned kMaxOperations = 8;
// Below what the kernel writes at a time: a write that it cuts there counts as whole, and the next one begins.
constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;

bool fits(const DiskOperation& operation) {
    using Kind = DiskOperation::Kind;
    return operation.kind == Kind::sync ||
           (operation.kind == Kind::write && operation.data.size() <= kMaxWriteBytes);
}

}  // namespace

// Of a chain only one completion is told: that of its last operation, or of the first that failed.
struct DiskQueue::Ring {
    ~Ring() {
        if (made) io_uring_queue_exit(&ring);
    }

    io_uring ring{};
    bool made = false;
    bool broken = false;  // it holds what is never to be begun
    bool under_way = false;
    std::size_t number = 0;  // of the operation that the completion is of
    int result = 0;          // bytes, or an errno below 0
};

std::unique_ptr<DiskQueue> DiskQueue::make(PosixDisk& disk, int wakes) {
    auto ring = std::make_unique<Ring>();
    ring->made = io_uring_queue_init(kMaxOperations, &ring->ring, 0) == 0;
    if (!ring->made || (ring->ring.features & IORING_FEAT_CQE_SKIP) == 0) return nullptr;
    if (io_uring_register_eventfd(&ring->ring, wakes) != 0) return nullptr;
    return std::unique_ptr<DiskQueue>(new DiskQueue(disk, std::move(ring)));
}

DiskQueue::DiskQueue(PosixDisk& disk, std::unique_ptr<Ring> ring) : disk_(disk), ring_(std::move(ring)) {}

DiskQueue::~DiskQueue() {
    while (ring_->under_way) {
        io_uring_cqe* completion = nullptr;
        const int waited = io_uring_wait_cqe(&ring_->ring, &completion);
        if (waited < 0 && waited != -EINTR) break;  // the kernel ends the ring, and what is in it, with its descriptor
        take_completion();
    }
}

bool DiskQueue::begin(std::span<const DiskOperation> operations) {
    LOCKSTEP_CHECK(job_.empty());
    if (ring_->broken || operations.empty() || operations.size() > kMaxOperations) return false;
    if (!std::ranges::all_of(operations, fits)) return false;
    for (std::size_t number = 0; number < operations.size(); ++number) {
        const DiskOperation& operation = operations[number];
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_->ring);
        const int descriptor = disk_.descriptor(operation.file);
        if (operation.kind == DiskOperation::Kind::write)
            io_uring_prep_write(entry, descriptor, operation.data.data(), static_cast<unsigned>(operation.data.size()),
                                operation.offset);
        else
            io_uring_prep_fsync(entry, descriptor, IORING_FSYNC_DATASYNC);
        if (number == 0) entry->flags |= IOSQE_ASYNC;  // not the copy of a large batch on this thread
        if (number + 1 < operations.size()) entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(entry, number);
    }
    const int taken = io_uring_submit(&ring_->ring);
    ring_->broken = taken != static_cast<int>(operations.size());
    if (taken <= 0) return false;
    job_ = operations;
    ring_->under_way = !ring_->broken;
    return true;
}

std::optional<DiskQueue::Ended> DiskQueue::ended() {
    if (job_.empty()) return std::nullopt;
    if (ring_->under_way) take_completion();
    if (ring_->under_way) return std::nullopt;
    const Ended how = judge();
    job_ = {};
    return how;
}

void DiskQueue::take_completion() {
    io_uring_cqe* completion = nullptr;
    if (io_uring_peek_cqe(&ring_->ring, &completion) != 0) return;
    ring_->number = io_uring_cqe_get_data64(completion);
    ring_->result = completion->res;
    ring_->under_way = false;
    io_uring_cqe_seen(&ring_->ring, completion);
}

// A sync that failed is never unfinished (S13).
DiskQueue::Ended DiskQueue::judge() {
    if (ring_->broken) {
        // For want of memory the kernel has begun a part, and does not say when that has ended.
        error_ = disk_.error_of(job_.front(), ENOMEM);
        return Ended::failed;
    }
    const DiskOperation& operation = job_[ring_->number];
    const bool sync = operation.kind == DiskOperation::Kind::sync;
    const int result = ring_->result;
    if (result >= 0 && (sync || static_cast<std::size_t>(result) == operation.data.size())) {
        LOCKSTEP_CHECK_OP(ring_->number + 1, ==, job_.size());
        return Ended::done;
    }
    if (!sync && (result >= 0 || result == -EAGAIN || result == -EINTR)) return Ended::unfinished;
    error_ = disk_.error_of(operation, -result);
    return Ended::failed;
}

}  // namespace lockstep::log
