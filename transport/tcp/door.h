// Lets the holder of the one incoming lane in, by its token, and receives its lane.
#pragma once

#include "transport/link/memory.h"
#include "transport/link/target.h"
#include "transport/link/waker.h"
#include "transport/tcp/gate.h"
#include "transport/tcp/landing_bell.h"
#include "transport/tcp/lane_connection.h"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace lockstep::transport::tcp {

class Door final : public link::LaneDoor {
 public:
    // All must outlive the acceptor.
    Door(Gate& gate, const link::RingMemory& memory, link::Waker& waker, bool wakes_at_landing)
        : gate_(gate), memory_(memory), waker_(waker), wakes_at_landing_(wakes_at_landing) {}

    Result<void> let_in(const link::Hello& hello, link::Socket& socket, std::span<const std::byte> early,
                        const std::string& answer) override;
    bool has_lane() const override { return lane_ && !lane_->closed(); }
    void close() override;

 private:
    Gate& gate_;
    const link::RingMemory& memory_;
    link::Waker& waker_;
    const bool wakes_at_landing_;
    std::optional<LandingBell> bell_;
    std::shared_ptr<LaneConnection> lane_;
};

}  // namespace lockstep::transport::tcp
