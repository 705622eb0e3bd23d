// One queue pair, which serves once: made, connected, reset, destroyed. A successor is another one.
#pragma once

#include "transport/rdma/device.h"
#include "transport/rdma/pair_address.h"
#include "transport/rdma/verbs.h"

#include <lockstep/result.h>

#include <cstdint>
#include <memory>

namespace lockstep::transport::rdma {

class QueuePair {
 public:
    // Work requests that are asked for to be sent from within the request itself, in bytes; a device may offer less.
    static constexpr unsigned kInlineBytes = 512;

    // In state INIT, with no right for the peer, and a random first PSN. `device` outlives it. Blocks for the device.
    static Result<std::unique_ptr<QueuePair>> make(Device& device, ibv_pd* domain, ibv_cq* queue, unsigned sends);
    // Destroys it, unless it is already. Blocks for the device, and until its asynchronous events are acknowledged.
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    ibv_qp* raw() const { return pair_; }
    std::uint32_t number() const { return number_; }
    unsigned inline_bytes() const { return inline_bytes_; }
    PairAddress address() const;

    // To state RTR: can be reached by that peer, which still may do nothing. Blocks; on Ethernet the peer's hardware
    // address may have to be asked for, which can take seconds where it does not answer.
    Result<void> reach(const PairAddress& peer);
    // To state RTS: the peer gets `rights` (IBV_ACCESS_REMOTE_...), and requests can be posted. Blocks for the device.
    Result<void> arm(unsigned rights);
    // Ends it: when this has returned no byte comes or goes through it any more, and no completion is added. Posted
    // requests are forgotten. Blocks for the device. A card's queue pair is moved to RESET, and is left to be destroyed
    // when there is time. soft-RoCE's is destroyed at once, and never moved to RESET: its RESET does not wait for a
    // packet that another processor is just copying, and miscounts its references then, until the device is gone
    // (seen with kernel 6.1); destroying waits.
    Result<void> stop();

 private:
    QueuePair(Device& device, ibv_qp* pair, unsigned inline_bytes, std::uint32_t first_psn)
        : device_(device), pair_(pair), number_(pair->qp_num), inline_bytes_(inline_bytes), first_psn_(first_psn) {}

    Device& device_;
    ibv_qp* pair_;                 // null once it is destroyed
    const std::uint32_t number_;
    const unsigned inline_bytes_;
    const std::uint32_t first_psn_;
    std::uint8_t reads_at_once_ = 1;
};

}  // namespace lockstep::transport::rdma
