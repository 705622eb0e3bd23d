#include "transport/rdma/device.h"

#include "transport/logger.h"

#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace lockstep::transport::rdma {

Result<std::unique_ptr<Device>> Device::open(const Choice& choice, std::function<void(DeviceNews)> heard) {
    int count = 0;
    const std::unique_ptr<ibv_device*, Freer<ibv_free_device_list>> list(ibv_get_device_list(&count));
    for (int i = 0; list && i < count; ++i) {
        if (choice.device != ibv_get_device_name(list.get()[i])) continue;
        std::unique_ptr<Device> device(new Device(choice, std::move(heard)));
        if (auto started = device->start(list.get()[i]); !started)
            return std::move(started).error().within("cannot use RDMA device " + choice.device);
        return device;
    }
    return Error("RDMA device " + choice.device + " is not there any more");
}

Result<void> Device::start(ibv_device* device) {
    context_.reset(ibv_open_device(device));
    if (!context_) return verbs_error("open it", errno);
    ibv_device_attr attributes{};
    if (const int error = ibv_query_device(context_.get(), &attributes); error != 0)
        return verbs_error("ask for its limits", error);
    ibv_port_attr port{};
    if (const int error = ibv_query_port(context_.get(), static_cast<std::uint8_t>(choice_.port), &port); error != 0)
        return verbs_error("ask for its port", error);
    lid_ = port.lid;
    mtu_ = static_cast<std::uint8_t>(port.active_mtu);
    const int reads = std::min({kMostReadsAtOnce, attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom});
    reads_at_once_ = static_cast<std::uint8_t>(std::max(1, reads));
    max_sends_ = static_cast<unsigned>(std::max(0, attributes.max_qp_wr));
    max_completions_ = attributes.max_cqe;
    guard_.emplace(std::vector<int>{context_->cmd_fd, context_->async_fd});
    const int flags = fcntl(context_->async_fd, F_GETFL);
    if (flags < 0 || fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return verbs_error("watch its events", errno);
    end_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (end_ < 0) return verbs_error("make an eventfd", errno);
    // Signals are the application's: its handlers do not run on this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    listener_ = std::thread([this] {
        pthread_setname_np(pthread_self(), "lockstep-device");
        listen();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
}

Device::~Device() {
    end_listening();
    if (end_ >= 0) close(end_);
}

void Device::end_listening() {
    if (!listener_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(end_, &one, sizeof one);
    listener_.join();
}

std::chrono::nanoseconds Device::longest_echo() const {
    // The standard lets a device take four times as long as it was told to.
    constexpr std::uint64_t kSlack = 4;
    return std::chrono::nanoseconds(kSlack * (kRetries + 1) * (std::uint64_t{4096} << timeout_exponent()));
}

void Device::listen() {
    pollfd waits[] = {{context_->async_fd, POLLIN, 0}, {end_, POLLIN, 0}};
    for (;;) {
        if (poll(waits, 2, -1) < 0 && errno != EINTR) return;
        if (waits[1].revents != 0) return;
        if ((waits[0].revents & POLLIN) != 0)
            take_event();
        else if (waits[0].revents != 0)
            waits[0].fd = -1;  // the device has gone for good: only the end is waited for
    }
}

void Device::take_event() {
    ibv_async_event event{};
    if (ibv_get_async_event(context_.get(), &event) != 0) return;
    const bool ours = event.element.port_num == choice_.port;
    const char* text = ibv_event_type_str(event.event_type);
    switch (event.event_type) {
        case IBV_EVENT_PORT_ERR:
            if (ours) heard_(DeviceNews::port_down);
            break;
        case IBV_EVENT_PORT_ACTIVE:
            if (ours) heard_(DeviceNews::port_up);
            break;
        case IBV_EVENT_DEVICE_FATAL:
            heard_(DeviceNews::gone);
            break;
        default:
            // What happened to a queue pair is said by its completions, or noticed by its peer.
            break;
    }
    logger().debug("{}: {}", choice_.device, text);
    ibv_ack_async_event(&event);
}

}  // namespace lockstep::transport::rdma
