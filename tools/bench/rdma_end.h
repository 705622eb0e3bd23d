// One end of a connected queue pair, in raw verbs: what the limit over RDMA is measured with.
#pragma once

#include <lockstep/result.h>

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

template <auto destroy>
struct Destroy {
    template <class T>
    void operator()(T* object) const {
        destroy(object);
    }
};

// How the ends of a connection find each other; goes over a socket as it is.
struct RdmaAddress {
    std::uint32_t queue_pair = 0;
    std::uint32_t first_packet = 0;
    std::uint32_t key = 0;
    std::uint32_t mtu = 0;
    std::uint64_t memory = 0;
    ibv_gid gid{};
};

// A device's port that has an address, opened.
class RdmaPort {
 public:
    // The first active port with a RoCE v2 entry of `host`, an IPv4 address.
    static Result<RdmaPort> open(const std::string& host);

    ibv_context* context() const { return context_.get(); }
    std::uint8_t number() const { return number_; }
    std::uint8_t gid_index() const { return gid_index_; }
    const ibv_gid& gid() const { return gid_; }
    ibv_mtu mtu() const { return mtu_; }

 private:
    RdmaPort() = default;
    std::unique_ptr<ibv_context, Destroy<ibv_close_device>> context_;
    std::uint8_t number_ = 1;
    std::uint8_t gid_index_ = 0;
    ibv_gid gid_{};
    ibv_mtu mtu_ = IBV_MTU_1024;
};

// One thread. Posts WRITEs of the own memory to the same place of the other end's; they complete in `queue`.
class RdmaEnd {
 public:
    static constexpr std::uint32_t kMostPosted = 256;

    // `queue` may be shared by several ends of one port, and outlives them.
    static Result<RdmaEnd> make(const RdmaPort& port, std::size_t bytes, ibv_cq* queue);
    RdmaAddress address() const;
    Result<void> connect(const RdmaAddress& other);
    Result<void> post_write(std::size_t bytes);
    std::uint32_t queue_pair() const { return pair_->qp_num; }

 private:
    RdmaEnd() = default;
    const RdmaPort* port_ = nullptr;
    std::vector<std::byte> memory_;
    std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>> domain_;
    std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>> region_;
    std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>> pair_;
    std::uint32_t first_packet_ = 0;
    std::uint32_t inline_bytes_ = 0;
    RdmaAddress other_;
};

}  // namespace lockstep::bench
