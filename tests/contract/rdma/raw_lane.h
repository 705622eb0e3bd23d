// Two ends of a queue pair made from the transport's own parts, to do to them what no fabric does.
#pragma once

#include "tests/contract/rdma/rdma_world.h"
#include "transport/link/memory.h"
#include "transport/rdma/choice.h"
#include "transport/rdma/device.h"
#include "transport/rdma/queue_pair.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep::transport::contract {

// A device with memory that is registered with these rights, and a completion queue.
struct RawEnd {
    std::unique_ptr<rdma::Device> device;
    rdma::Domain domain;
    link::RingMemory memory;
    rdma::Region region;
    rdma::Queue queue;
    std::unique_ptr<rdma::QueuePair> pair;

    static RawEnd open(ReplicaId id, std::uint64_t bytes, int rights) {
        const rdma::RdmaOptions options = rdma_options({id});
        auto choice = rdma::choose(rdma::survey(), {options.listen_host, options.device, 0, -1});
        EXPECT_TRUE(choice.ok());
        auto device = rdma::Device::open(choice.value(), [](rdma::DeviceNews) {});
        EXPECT_TRUE(device.ok());
        auto memory = link::RingMemory::map(bytes);
        EXPECT_TRUE(memory.ok());
        ibv_context* context = device.value()->context();
        RawEnd end{std::move(device).value(), rdma::Domain(ibv_alloc_pd(context)), std::move(memory).value(),
                   nullptr, rdma::Queue(ibv_create_cq(context, 256, nullptr, nullptr, 0)), nullptr};
        end.region.reset(ibv_reg_mr(end.domain.get(), end.memory.ring().data(), bytes, rights));
        EXPECT_TRUE(end.region && end.queue);
        return end;
    }

    void make_pair(unsigned sends = 64) {
        auto made = rdma::QueuePair::make(*device, domain.get(), queue.get(), sends);
        ASSERT_TRUE(made.ok()) << made.error().message();
        pair = std::move(made).value();
    }

    // Posts a write of [at, at + bytes) of the own memory to the same place of the peer's; false if there is no room.
    bool write(const RawEnd& to, std::uint64_t at, std::uint32_t bytes) {
        ibv_sge piece{reinterpret_cast<std::uint64_t>(memory.ring().data()) + at, bytes, region->lkey};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED;
        request.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to.memory.ring().data()) + at;
        request.wr.rdma.rkey = to.region->rkey;
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(pair->raw(), &request, &bad) == 0;
    }

    // The next completion; none if there is none now.
    bool complete(ibv_wc& done) { return ibv_poll_cq(queue.get(), 1, &done) > 0; }
};

inline void connect(RawEnd& holder, RawEnd& target, unsigned rights) {
    ASSERT_NO_FATAL_FAILURE(holder.make_pair());
    ASSERT_NO_FATAL_FAILURE(target.make_pair());
    ASSERT_TRUE(target.pair->reach(holder.pair->address()).ok());
    ASSERT_TRUE(target.pair->arm(rights).ok());
    ASSERT_TRUE(holder.pair->reach(target.pair->address()).ok());
    ASSERT_TRUE(holder.pair->arm(0).ok());
}

}  // namespace lockstep::transport::contract
