#include "tools/bench/rdma_end.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace lockstep::bench {
namespace {

constexpr std::uint32_t kInlineBytes = 256;
// 4.096 us times two to this, 1 s: soft-RoCE's timer also fires for packets that are not lost.
constexpr std::uint8_t kTimeout = 18;
constexpr std::uint8_t kRetries = 7;

Error refused(const char* what, int error) {
    return Error(std::string("cannot ") + what + ": " + std::strerror(error));
}

// An IPv4 address as it stands in a GID: ::ffff:a.b.c.d.
Result<ibv_gid> gid_of(const std::string& host) {
    ibv_gid gid{};
    gid.raw[10] = gid.raw[11] = 0xff;
    if (inet_pton(AF_INET, host.c_str(), gid.raw + 12) != 1)
        return Error("\"" + host + "\" is no IPv4 address: --hosts takes one for each replica");
    return gid;
}

// The place of `wanted` in the port's table, as RoCE v2; negative if it is not there.
int find_gid(ibv_context* context, std::uint8_t port, int entries, const ibv_gid& wanted) {
    for (int i = 0; i < entries; ++i) {
        ibv_gid_entry entry{};
        if (ibv_query_gid_ex(context, port, static_cast<std::uint32_t>(i), &entry, 0) != 0) continue;
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && std::memcmp(&entry.gid, &wanted, sizeof wanted) == 0) return i;
    }
    return -1;
}

}  // namespace

Result<RdmaPort> RdmaPort::open(const std::string& host) {
    const auto gid = gid_of(host);
    if (!gid) return gid.error();
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    if (devices == nullptr) return refused("list RDMA devices", errno);
    const std::unique_ptr<ibv_device*, Destroy<ibv_free_device_list>> list(devices);
    for (int i = 0; i < count; ++i) {
        RdmaPort port;
        port.context_.reset(ibv_open_device(devices[i]));
        ibv_device_attr device{};
        if (!port.context_ || ibv_query_device(port.context(), &device) != 0) continue;
        for (std::uint8_t number = 1; number <= device.phys_port_cnt; ++number) {
            ibv_port_attr attributes{};
            if (ibv_query_port(port.context(), number, &attributes) != 0) continue;
            if (attributes.state != IBV_PORT_ACTIVE) continue;
            const int index = find_gid(port.context(), number, attributes.gid_tbl_len, gid.value());
            if (index < 0) continue;
            port.number_ = number;
            port.gid_index_ = static_cast<std::uint8_t>(index);
            port.gid_ = gid.value();
            port.mtu_ = attributes.active_mtu;
            return port;
        }
    }
    return Error("none of the " + std::to_string(count) + " RDMA devices has an active port with the RoCE v2 address " +
                 host);
}

Result<RdmaEnd> RdmaEnd::make(const RdmaPort& port, std::size_t bytes, ibv_cq* queue) {
    RdmaEnd end;
    end.port_ = &port;
    end.memory_.resize(bytes, std::byte{0x5a});
    end.domain_.reset(ibv_alloc_pd(port.context()));
    if (!end.domain_) return refused("make a protection domain", errno);
    end.region_.reset(ibv_reg_mr(end.domain_.get(), end.memory_.data(), bytes,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (!end.region_) return refused("register memory (see ulimit -l)", errno);
    ibv_qp_init_attr wish{};
    wish.send_cq = wish.recv_cq = queue;
    wish.qp_type = IBV_QPT_RC;
    wish.cap = {.max_send_wr = kMostPosted, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
                .max_inline_data = kInlineBytes};
    end.pair_.reset(ibv_create_qp(end.domain_.get(), &wish));
    if (!end.pair_) return refused("make a queue pair", errno);
    end.inline_bytes_ = wish.cap.max_inline_data;
    end.first_packet_ = std::random_device()() & 0xffffff;
    return end;
}

RdmaAddress RdmaEnd::address() const {
    return {pair_->qp_num, first_packet_, region_->rkey, static_cast<std::uint32_t>(port_->mtu()),
            reinterpret_cast<std::uint64_t>(memory_.data()), port_->gid()};
}

Result<void> RdmaEnd::connect(const RdmaAddress& other) {
    other_ = other;
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = port_->number();
    to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (const int error = ibv_modify_qp(pair_.get(), &to,
                                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return refused("set a queue pair up", error);
    to = {};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = std::min(port_->mtu(), static_cast<ibv_mtu>(other.mtu));
    to.dest_qp_num = other.queue_pair;
    to.rq_psn = other.first_packet;
    to.max_dest_rd_atomic = 1;
    to.min_rnr_timer = 12;
    to.ah_attr.is_global = 1;
    to.ah_attr.grh.dgid = other.gid;
    to.ah_attr.grh.sgid_index = port_->gid_index();
    to.ah_attr.grh.hop_limit = 64;
    to.ah_attr.port_num = port_->number();
    if (const int error = ibv_modify_qp(pair_.get(), &to,
                                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return refused("reach the other queue pair", error);
    to = {};
    to.qp_state = IBV_QPS_RTS;
    to.timeout = kTimeout;
    to.retry_cnt = kRetries;
    to.rnr_retry = kRetries;
    to.sq_psn = first_packet_;
    to.max_rd_atomic = 1;
    if (const int error = ibv_modify_qp(pair_.get(), &to,
                                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
        return refused("let a queue pair send", error);
    return {};
}

Result<void> RdmaEnd::post_write(std::size_t bytes) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(memory_.data()), static_cast<std::uint32_t>(bytes), region_->lkey};
    ibv_send_wr work{};
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    if (bytes <= inline_bytes_) work.send_flags |= IBV_SEND_INLINE;
    work.wr.rdma = {other_.memory, other_.key};
    ibv_send_wr* refused_work = nullptr;
    if (const int error = ibv_post_send(pair_.get(), &work, &refused_work)) return refused("post a write", error);
    return {};
}

}  // namespace lockstep::bench
