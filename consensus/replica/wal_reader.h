// Durable mode: the log on disk, read for others, aside of the thread that writes it.
#pragma once

#include "consensus/replica/background.h"
#include "consensus/replica/log_source.h"
#include "consensus/replica/wal_storage.h"
#include "log/disk/disk.h"

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::replica {

class WalReader final : public LogSource {
 public:
    // `disk` shows the folder that `storage` writes, and is used by the background only; all references outlive this.
    WalReader(const WalStorage& storage, log::Disk& disk, Background& background, std::function<void()> wake)
        : storage_(storage), disk_(disk), background_(background), shared_(std::make_shared<Shared>()) {
        shared_->wake = std::move(wake);
    }

    Position begin() const override;
    void read(ReplicaId peer, Position at, std::uint64_t bytes) override;
    void take(std::vector<LogBytes>& read) override;

 private:
    struct Shared {
        std::mutex mutex;
        std::vector<LogBytes> read;
        std::function<void()> wake;
    };
    const WalStorage& storage_;
    log::Disk& disk_;
    Background& background_;
    const std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep::replica
