// What waits for a disk, in virtual time.
#pragma once

#include "consensus/replica/background.h"
#include "consensus/replica/disk_worker.h"
#include "log/disk/sim_disk.h"
#include "log/wal/wal.h"
#include "transport/sim/network.h"

#include <lockstep/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::sim {

inline constexpr std::uint64_t kMs = 1'000'000;  // virtual time is in nanoseconds

// Performs a WAL's jobs in virtual time.
class SimWorker final : public DiskWorker {
 public:
    // `wake` is called when a job has ended.
    SimWorker(transport::sim::Network& network, log::SimDisk& disk, std::function<void()> wake)
        : network_(network), disk_(disk), wake_(std::move(wake)), alive_(std::make_shared<bool>(true)) {}
    ~SimWorker() override { *alive_ = false; }
    SimWorker(const SimWorker&) = delete;
    SimWorker& operator=(const SimWorker&) = delete;
    bool turn(log::Wal& wal) override;

 private:
    void plan();
    void perform();

    transport::sim::Network& network_;
    log::SimDisk& disk_;
    const std::function<void()> wake_;
    const std::shared_ptr<bool> alive_;  // what is planned for a worker that is gone does nothing
    const log::DiskJob* job_ = nullptr;
    std::size_t next_ = 0;
    std::optional<Result<void>> outcome_;
};

// Does in virtual time what a replica has done aside.
class SimBackground final : public replica::Background {
 public:
    SimBackground(transport::sim::Network& network, const log::SimDisk& disk)
        : network_(network), disk_(disk), alive_(std::make_shared<bool>(true)) {}
    ~SimBackground() override { *alive_ = false; }
    SimBackground(const SimBackground&) = delete;
    SimBackground& operator=(const SimBackground&) = delete;
    void run(std::function<void()> work) override;

 private:
    void plan();

    transport::sim::Network& network_;
    const log::SimDisk& disk_;
    const std::shared_ptr<bool> alive_;
    std::deque<std::function<void()>> waiting_;
};

}  // namespace lockstep::sim
