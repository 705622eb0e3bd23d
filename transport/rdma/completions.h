// The completion queue that all of a replica's requests share, and how the protocol thread waits for it. That thread
// only.
#pragma once

#include "transport/rdma/device.h"
#include "transport/rdma/verbs.h"

#include <lockstep/result.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace lockstep::transport::rdma {

class Completions {
 public:
    static constexpr std::size_t kTakenAtOnce = 32;

    // `context` and `device` outlive this.
    static Result<std::unique_ptr<Completions>> make(Device& device, boost::asio::io_context& context, int entries);
    ~Completions();

    ibv_cq* queue() const { return queue_.get(); }
    // Takes the next completions off the queue, so many at most; valid until the next call.
    std::span<const ibv_wc> take();
    // The next completion makes the context run a handler, which ends its sleep. One that is in the queue already does
    // not: look again after this.
    void arm();

 private:
    // Events are acknowledged so many at a time: it takes a lock.
    static constexpr unsigned kEventsPerAcknowledgement = 64;

    explicit Completions(boost::asio::io_context& context) : descriptor_(context) {}
    void watch();
    void take_events();

    std::optional<ForkGuard> guard_;
    Channel channel_;
    Queue queue_;
    boost::asio::posix::stream_descriptor descriptor_;  // the channel's
    std::array<ibv_wc, kTakenAtOnce> taken_;
    bool armed_ = false;
    unsigned unacknowledged_ = 0;
};

}  // namespace lockstep::transport::rdma
