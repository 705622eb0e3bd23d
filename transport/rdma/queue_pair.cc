#include "transport/rdma/queue_pair.h"

#include <algorithm>
#include <utility>

#include <sys/random.h>

namespace lockstep::transport::rdma {
namespace {

constexpr std::uint8_t kMinRnrTimer = 12;  // 0.64 ms; nothing here consumes receives, so it is never used
constexpr std::uint8_t kHopLimit = 64;

}  // namespace

bool sound(const PairAddress& address) {
    return address.number <= kMax24 && address.first_psn <= kMax24 && address.mtu >= IBV_MTU_256 &&
           address.mtu <= IBV_MTU_4096 && address.reads >= 1;
}

Result<std::unique_ptr<QueuePair>> QueuePair::make(Device& device, ibv_pd* domain, ibv_cq* queue, unsigned sends) {
    std::uint32_t psn = 0;
    if (getrandom(&psn, sizeof psn, 0) != sizeof psn) return verbs_error("draw a random number", errno);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = queue;
    wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = sends;
    wanted.cap.max_send_sge = 1;
    wanted.cap.max_recv_wr = 1;
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = kInlineBytes;
    ibv_qp* pair = nullptr;
    // A device that has less room for inline data says so by a refusal.
    for (unsigned bytes = kInlineBytes; pair == nullptr; bytes /= 2) {
        wanted.cap.max_inline_data = bytes;
        pair = ibv_create_qp(domain, &wanted);
        if (pair == nullptr && (errno != EINVAL || bytes == 0)) return verbs_error("make a queue pair", errno);
    }
    std::unique_ptr<QueuePair> made(new QueuePair(device, pair, wanted.cap.max_inline_data, psn & kMax24));
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = static_cast<std::uint8_t>(device.choice().port);
    attributes.qp_access_flags = 0;
    const int error = ibv_modify_qp(pair, &attributes,
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0) return verbs_error("initialize a queue pair", error);
    return made;
}

QueuePair::~QueuePair() {
    if (pair_ != nullptr) ibv_destroy_qp(pair_);
}

PairAddress QueuePair::address() const {
    PairAddress out;
    out.number = number();
    out.first_psn = first_psn_;
    out.lid = device_.choice().ethernet ? 0 : device_.lid();
    out.mtu = device_.mtu();
    out.reads = device_.reads_at_once();
    out.gid = device_.choice().gid;
    return out;
}

Result<void> QueuePair::reach(const PairAddress& peer) {
    if (!sound(peer)) return Error("the peer's queue pair has an address that makes no sense");
    const bool ethernet = device_.choice().ethernet;
    if (!ethernet && peer.lid == 0) return Error("the peer is on Ethernet, this replica on InfiniBand");
    if (ethernet && peer.lid != 0) return Error("the peer is on InfiniBand, this replica on Ethernet");
    reads_at_once_ = std::min(peer.reads, device_.reads_at_once());
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = static_cast<ibv_mtu>(std::min(peer.mtu, device_.mtu()));
    attributes.dest_qp_num = peer.number;
    attributes.rq_psn = peer.first_psn;
    attributes.max_dest_rd_atomic = device_.reads_at_once();
    attributes.min_rnr_timer = kMinRnrTimer;
    attributes.ah_attr.port_num = static_cast<std::uint8_t>(device_.choice().port);
    if (ethernet) {
        attributes.ah_attr.is_global = 1;
        std::copy(peer.gid.begin(), peer.gid.end(), attributes.ah_attr.grh.dgid.raw);
        attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.choice().gid_index);
        attributes.ah_attr.grh.hop_limit = kHopLimit;
    } else {
        attributes.ah_attr.dlid = peer.lid;
    }
    const int error = ibv_modify_qp(pair_, &attributes,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error == 0) return {};
    return verbs_error("reach the queue pair at " + (ethernet ? to_string(peer.gid) : std::to_string(peer.lid)) +
                       " from " + device_.choice().text(), error);
}

Result<void> QueuePair::arm(unsigned rights) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = first_psn_;
    attributes.timeout = device_.timeout_exponent();
    attributes.retry_cnt = Device::kRetries;
    attributes.rnr_retry = 0;
    attributes.max_rd_atomic = reads_at_once_;
    attributes.qp_access_flags = rights;
    const int error = ibv_modify_qp(pair_, &attributes,
                                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ACCESS_FLAGS);
    if (error != 0) return verbs_error("connect a queue pair", error);
    return {};
}

Result<void> QueuePair::stop() {
    if (pair_ == nullptr) return {};
    int error = 0;
    if (device_.choice().hardware) {
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_RESET;
        error = ibv_modify_qp(pair_, &attributes, IBV_QP_STATE);
    } else {
        error = ibv_destroy_qp(std::exchange(pair_, nullptr));
    }
    if (error != 0 && !device_gone(error)) return verbs_error("stop a queue pair", error);
    return {};
}

}  // namespace lockstep::transport::rdma
