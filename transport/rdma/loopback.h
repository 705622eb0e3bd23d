// Reads the own ring through the card: what of earlier writes is still between card and memory comes before the answer.
#pragma once

#include "transport/link/memory.h"
#include "transport/rdma/device.h"
#include "transport/rdma/queue_pair.h"
#include "transport/rdma/verbs.h"

#include <lockstep/result.h>

#include <array>
#include <cstdint>
#include <memory>

namespace lockstep::transport::rdma {

// Protocol thread.
class Loopback {
 public:
    // A queue pair connected to itself, with domain and completion queue of its own. Blocks for the device.
    static Result<std::unique_ptr<Loopback>> make(Device& device, const link::RingMemory& memory);

    // Returns when the read has completed: a scan of the ring that starts then sees every byte that the card had
    // written before. Error: it has not, within a bound; this loopback is of no more use.
    Result<void> push_writes_out();

 private:
    Loopback() = default;

    std::array<std::byte, 64> into_{};
    Domain domain_;
    Region ring_;
    Region own_;
    Queue queue_;
    std::unique_ptr<QueuePair> pair_;  // before what it uses goes
    std::uint64_t reads_ = 0;
};

}  // namespace lockstep::transport::rdma
