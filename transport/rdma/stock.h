// Queue pairs made beforehand, so that a lane can be opened without waiting for one to be made; and where they go when
// they have served.
#pragma once

#include "transport/rdma/queue_pair.h"
#include "transport/rdma/workers.h"

#include <lockstep/result.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::transport::rdma {

// The numbers of destroyed queue pairs, for as long as a peer may still send to them. Any thread.
class RestingNumbers {
 public:
    explicit RestingNumbers(std::chrono::nanoseconds rest) : rest_(rest) {}
    void add(std::uint32_t number);
    bool has(std::uint32_t number);

 private:
    struct Resting {
        std::uint32_t number;
        std::chrono::steady_clock::time_point until;
    };
    const std::chrono::nanoseconds rest_;
    std::mutex mutex_;
    std::deque<Resting> numbers_;  // oldest first; under mutex_
};

class Stock {
 public:
    // All but `sends` outlive it.
    Stock(Device& device, RestingNumbers& resting, ibv_pd* domain, ibv_cq* queue, unsigned sends,
          Workers::Strand strand);
    ~Stock();
    Stock(const Stock&) = delete;
    Stock& operator=(const Stock&) = delete;

    // A fresh queue pair; makes one, which takes as long as the device does, if none is left. Has another one made.
    // Any thread.
    Result<std::shared_ptr<QueuePair>> take();
    // Destroys it, away from the calling thread; after all jobs posted to the strand before. Any thread.
    void bury(std::shared_ptr<QueuePair> pair);
    // Has the stock filled up.
    void fill();
    const Workers::Strand& strand() const { return strand_; }

 private:
    static constexpr std::size_t kReady = 2;
    // Numbers that rest are passed over; a device gives out so many in a row only if it has hardly any other.
    static constexpr int kTries = 16;

    Result<std::shared_ptr<QueuePair>> make();

    Device& device_;
    RestingNumbers& resting_;
    ibv_pd* const domain_;
    ibv_cq* const queue_;
    const unsigned sends_;
    const Workers::Strand strand_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<QueuePair>> ready_;  // under mutex_
    bool filling_ = false;                           // under mutex_
};

}  // namespace lockstep::transport::rdma
