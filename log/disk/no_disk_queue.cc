// In the place of disk_queue.cc where there is no liburing.
#include "log/disk/disk_queue.h"

namespace lockstep::log {

struct DiskQueue::Ring {};

std::unique_ptr<DiskQueue> DiskQueue::make(PosixDisk&, int) { return nullptr; }

DiskQueue::DiskQueue(PosixDisk& disk, std::unique_ptr<Ring> ring) : disk_(disk), ring_(std::move(ring)) {}

DiskQueue::~DiskQueue() = default;

bool DiskQueue::begin(std::span<const DiskOperation>) { return false; }

std::optional<DiskQueue::Ended> DiskQueue::ended() { return std::nullopt; }

}  // namespace lockstep::log
