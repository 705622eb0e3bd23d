#include "log/disk/disk_queue.h"

#include "log/check.h"

#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

namespace lockstep::log {

namespace {

constexpr unsigned kMaxOperations = 8;

bool offers_what_is_needed(io_uring& ring) {
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
    if (probe == nullptr) return false;
    const bool offers = io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0 &&
                        io_uring_opcode_supported(probe, IORING_OP_FSYNC) != 0;
    io_uring_free_probe(probe);
    return offers;
}

}  // namespace

struct DiskQueue::Ring {
    ~Ring() {
        if (made) io_uring_queue_exit(&ring);
    }

    io_uring ring{};
    bool made = false;
    bool broken = false;  // it holds what is never to be begun
    std::array<int, kMaxOperations> results{};  // of each operation of the job: bytes, or an errno below 0
    unsigned left = 0;                          // operations under way
};

std::unique_ptr<DiskQueue> DiskQueue::make(PosixDisk& disk, int wakes) {
    auto ring = std::make_unique<Ring>();
    ring->made = io_uring_queue_init(kMaxOperations, &ring->ring, 0) == 0;
    if (!ring->made || !offers_what_is_needed(ring->ring)) return nullptr;
    if (io_uring_register_eventfd(&ring->ring, wakes) != 0) return nullptr;
    return std::unique_ptr<DiskQueue>(new DiskQueue(disk, std::move(ring)));
}

DiskQueue::DiskQueue(PosixDisk& disk, std::unique_ptr<Ring> ring) : disk_(disk), ring_(std::move(ring)) {}

DiskQueue::~DiskQueue() {
    while (ring_->left > 0) {
        io_uring_cqe* completion = nullptr;
        const int waited = io_uring_wait_cqe(&ring_->ring, &completion);
        if (waited < 0 && waited != -EINTR) break;  // the kernel ends the ring, and what is in it, with its descriptor
        take_completions();
    }
}

bool DiskQueue::begin(std::span<const DiskOperation> operations) {
    LOCKSTEP_CHECK(job_.empty());
    using Kind = DiskOperation::Kind;
    const auto fits = [](const DiskOperation& one) { return one.kind == Kind::write || one.kind == Kind::sync; };
    if (ring_->broken || operations.empty() || operations.size() > kMaxOperations) return false;
    if (!std::ranges::all_of(operations, fits)) return false;
    for (std::size_t number = 0; number < operations.size(); ++number) {
        const DiskOperation& operation = operations[number];
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_->ring);
        const int descriptor = disk_.descriptor(operation.file);
        if (operation.kind == Kind::write)
            io_uring_prep_write(entry, descriptor, operation.data.data(), static_cast<unsigned>(operation.data.size()),
                                operation.offset);
        else
            io_uring_prep_fsync(entry, descriptor, IORING_FSYNC_DATASYNC);
        if (number + 1 < operations.size()) entry->flags |= IOSQE_IO_LINK;
        io_uring_sqe_set_data64(entry, number);
        ring_->results[number] = -ECANCELED;
    }
    job_ = operations;
    // Of a chain that is taken in part, for want of memory, the rest would not wait for what is before it.
    const int taken = io_uring_submit(&ring_->ring);
    ring_->left = static_cast<unsigned>(std::max(taken, 0));
    ring_->broken = ring_->left < operations.size();
    return true;
}

std::optional<DiskQueue::Ended> DiskQueue::ended() {
    if (job_.empty()) return std::nullopt;
    take_completions();
    if (ring_->left > 0) return std::nullopt;
    const Ended how = judge();
    job_ = {};
    return how;
}

void DiskQueue::take_completions() {
    io_uring_cqe* completion = nullptr;
    while (ring_->left > 0 && io_uring_peek_cqe(&ring_->ring, &completion) == 0) {
        ring_->results[io_uring_cqe_get_data64(completion)] = completion->res;
        --ring_->left;
        io_uring_cqe_seen(&ring_->ring, completion);
    }
}

// By the first that did not succeed; those behind it were not begun. A sync that was begun and failed is never
// unfinished (S13).
DiskQueue::Ended DiskQueue::judge() {
    for (std::size_t number = 0; number < job_.size(); ++number) {
        const DiskOperation& operation = job_[number];
        const int result = ring_->results[number];
        const bool sync = operation.kind == DiskOperation::Kind::sync;
        if (result >= 0 && (sync || static_cast<std::size_t>(result) == operation.data.size())) continue;
        const bool put_off = result >= 0 || result == -EAGAIN || result == -EINTR;
        if (result == -ECANCELED || (put_off && !sync)) return Ended::unfinished;
        error_ = disk_.error_of(operation, -result);
        return Ended::failed;
    }
    return Ended::done;
}

}  // namespace lockstep::log
