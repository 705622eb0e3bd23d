#include "transport/rdma/completions.h"

#include "log/check.h"

#include <algorithm>

#include <fcntl.h>

namespace lockstep::transport::rdma {

Result<std::unique_ptr<Completions>> Completions::make(Device& device, boost::asio::io_context& context, int entries) {
    std::unique_ptr<Completions> made(new Completions(context));
    made->channel_.reset(ibv_create_comp_channel(device.context()));
    if (!made->channel_) return verbs_error("make a completion channel", errno);
    const int fd = made->channel_->fd;
    made->guard_.emplace(std::vector<int>{fd});
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return verbs_error("watch a completion channel", errno);
    made->queue_.reset(ibv_create_cq(device.context(), entries, nullptr, made->channel_.get(), 0));
    if (!made->queue_)
        return verbs_error("make a completion queue of " + std::to_string(entries) + " entries", errno);
    boost::system::error_code error;
    made->descriptor_.assign(fd, error);
    if (error) return Error("cannot watch a completion channel: " + error.message());
    made->watch();
    return made;
}

Completions::~Completions() {
    if (descriptor_.is_open()) descriptor_.release();  // the channel's own
    if (queue_ && unacknowledged_ > 0) ibv_ack_cq_events(queue_.get(), unacknowledged_);
}

std::span<const ibv_wc> Completions::take() {
    const int count = ibv_poll_cq(queue_.get(), static_cast<int>(taken_.size()), taken_.data());
    // Only a queue that has overflowed or lost its device says so; the former is a mistake in its size.
    return std::span<const ibv_wc>(taken_).first(static_cast<std::size_t>(std::max(count, 0)));
}

void Completions::arm() {
    if (armed_) return;
    armed_ = ibv_req_notify_cq(queue_.get(), 0) == 0;
}

void Completions::watch() {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this](const boost::system::error_code& error) {
                               if (error) return;
                               take_events();
                               watch();
                           });
}

void Completions::take_events() {
    ibv_cq* queue = nullptr;
    void* ignored = nullptr;
    while (ibv_get_cq_event(channel_.get(), &queue, &ignored) == 0) {
        armed_ = false;
        if (++unacknowledged_ < kEventsPerAcknowledgement) continue;
        ibv_ack_cq_events(queue_.get(), unacknowledged_);
        unacknowledged_ = 0;
    }
}

}  // namespace lockstep::transport::rdma
