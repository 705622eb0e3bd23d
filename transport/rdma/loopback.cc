#include "transport/rdma/loopback.h"

#include "transport/link/spin_pause.h"

#include <chrono>

namespace lockstep::transport::rdma {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(200);
constexpr unsigned kSends = 4;

}  // namespace

Result<std::unique_ptr<Loopback>> Loopback::make(Device& device, const link::RingMemory& memory) {
    std::unique_ptr<Loopback> made(new Loopback);
    made->domain_.reset(ibv_alloc_pd(device.context()));
    if (!made->domain_) return verbs_error("make a protection domain", errno);
    ibv_pd* domain = made->domain_.get();
    const std::span<std::byte> line = memory.probe_line();
    // As numbers: ibv_reg_mr is a macro that mixes enumerations.
    constexpr int kRead = IBV_ACCESS_REMOTE_READ;
    constexpr int kWrite = IBV_ACCESS_LOCAL_WRITE;
    made->ring_.reset(ibv_reg_mr(domain, line.data(), line.size(), kRead));
    made->own_.reset(ibv_reg_mr(domain, made->into_.data(), made->into_.size(), kWrite));
    if (!made->ring_ || !made->own_) return verbs_error("register the probe line", errno);
    made->queue_.reset(ibv_create_cq(device.context(), kSends, nullptr, nullptr, 0));
    if (!made->queue_) return verbs_error("make a completion queue", errno);
    auto pair = QueuePair::make(device, domain, made->queue_.get(), kSends);
    if (!pair) return std::move(pair).error();
    made->pair_ = std::move(pair).value();
    if (auto reached = made->pair_->reach(made->pair_->address()); !reached) return std::move(reached).error();
    if (auto armed = made->pair_->arm(IBV_ACCESS_REMOTE_READ); !armed) return std::move(armed).error();
    return made;
}

Result<void> Loopback::push_writes_out() {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(into_.data()), static_cast<std::uint32_t>(into_.size()), own_->lkey};
    ibv_send_wr read{};
    read.wr_id = ++reads_;
    read.sg_list = &piece;
    read.num_sge = 1;
    read.opcode = IBV_WR_RDMA_READ;
    read.send_flags = IBV_SEND_SIGNALED;
    read.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(ring_->addr);
    read.wr.rdma.rkey = ring_->rkey;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(pair_->raw(), &read, &bad); error != 0)
        return verbs_error("read the own ring", error);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    link::SpinPause pause;
    for (;;) {
        ibv_wc done{};
        const int count = ibv_poll_cq(queue_.get(), 1, &done);
        if (count > 0 && done.status == IBV_WC_SUCCESS && done.wr_id == reads_) return {};
        if (count > 0 && done.status != IBV_WC_SUCCESS)
            return Error(std::string("cannot read the own ring: ") + ibv_wc_status_str(done.status));
        if (count < 0) return Error("cannot read the own ring: its completion queue is broken");
        if (std::chrono::steady_clock::now() > end) return Error("cannot read the own ring: no completion in time");
        pause.once();
    }
}

}  // namespace lockstep::transport::rdma
