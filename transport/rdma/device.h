// An opened RDMA device and the port that is used of it, with the thread that takes its asynchronous events.
#pragma once

#include "transport/rdma/choice.h"
#include "transport/rdma/fork_guard.h"
#include "transport/rdma/verbs.h"

#include <lockstep/result.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace lockstep::transport::rdma {

enum class DeviceNews : std::uint8_t { port_down, port_up, gone };

class Device {
 public:
    // A request that is not answered is sent again so many times; then its queue pair breaks.
    static constexpr std::uint8_t kRetries = 3;

    // Opens it and starts the thread, which calls `heard` for what concerns the chosen port or all of the device. It
    // also acknowledges the events of queue pairs, without which none of them could be destroyed.
    static Result<std::unique_ptr<Device>> open(const Choice& choice, std::function<void(DeviceNews)> heard);
    ~Device();
    // `heard` is not called after this.
    void end_listening();

    const Choice& choice() const { return choice_; }
    ibv_context* context() const { return context_.get(); }
    std::uint16_t lid() const { return lid_; }
    std::uint8_t mtu() const { return mtu_; }                       // ibv_mtu
    std::uint8_t reads_at_once() const { return reads_at_once_; }
    unsigned max_sends() const { return max_sends_; }
    int max_completions() const { return max_completions_; }
    // How long a request waits for its acknowledgement: 4.096 us times 2 to this.
    std::uint8_t timeout_exponent() const { return choice_.hardware ? kCardTimeout : kSoftwareTimeout; }
    // After this time no packet of a queue pair that was destroyed at the other end is sent again.
    std::chrono::nanoseconds longest_echo() const;

 private:
    static constexpr std::uint8_t kCardTimeout = 14;      // 67 ms
    // soft-RoCE's timer also fires for packets that are not lost; its retransmissions are no help to anybody.
    static constexpr std::uint8_t kSoftwareTimeout = 18;  // 1 s
    static constexpr int kMostReadsAtOnce = 4;

    Device(const Choice& choice, std::function<void(DeviceNews)> heard) : choice_(choice), heard_(std::move(heard)) {}
    Result<void> start(ibv_device* device);
    void listen();
    void take_event();

    const Choice choice_;
    const std::function<void(DeviceNews)> heard_;
    Context context_;
    std::optional<ForkGuard> guard_;
    std::uint16_t lid_ = 0;
    std::uint8_t mtu_ = 0;
    std::uint8_t reads_at_once_ = 1;
    unsigned max_sends_ = 0;
    int max_completions_ = 0;
    int end_ = -1;                 // an eventfd that ends the thread
    std::thread listener_;
};

}  // namespace lockstep::transport::rdma
