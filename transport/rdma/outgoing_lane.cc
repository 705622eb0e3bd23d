#include "transport/rdma/outgoing_lane.h"

#include "log/check.h"
#include "transport/logger.h"

#include <cstring>
#include <utility>

namespace lockstep::transport::rdma {

bool OutgoingLane::write(Position at, std::uint64_t bytes) {
    LOCKSTEP_CHECK_OP(bytes, >, 0);
    LOCKSTEP_CHECK_OP(bytes, <=, kMaxTransferBytes);
    LOCKSTEP_CHECK_OP(at.value, >=, end_.value);
    const std::uint64_t offset = at.value & (ring_.size() - 1);
    LOCKSTEP_CHECK_OP(offset + bytes, <=, ring_.size());
    if (next(target_.address + offset, ring_.data() + offset, bytes) == nullptr) return false;
    end_ = at + bytes;
    return true;
}

bool OutgoingLane::probe(std::uint64_t number) {
    // The number is sent from within the request, which every device can do with eight bytes.
    Request* made = next(target_.address + ring_.size(), nullptr, sizeof number);
    if (made == nullptr) return false;
    made->probe = number;
    made->piece.addr = reinterpret_cast<std::uint64_t>(&made->probe);
    return true;
}

OutgoingLane::Request* OutgoingLane::next(std::uint64_t remote, const void* from, std::uint64_t bytes) {
    if (broken_ || !pair_ || posted_ - landed_ == kMaxUnfinishedWrites) return nullptr;
    Request& made = request(posted_);
    made.piece = {reinterpret_cast<std::uint64_t>(from), static_cast<std::uint32_t>(bytes), ring_key_};
    made.work.wr_id = posted_;
    made.work.next = nullptr;
    made.work.sg_list = &made.piece;
    made.work.num_sge = 1;
    made.work.opcode = IBV_WR_RDMA_WRITE;
    made.work.send_flags = bytes <= pair_->inline_bytes() ? static_cast<unsigned>(IBV_SEND_INLINE) : 0u;
    made.work.wr.rdma.remote_addr = remote;
    made.work.wr.rdma.rkey = target_.key;
    if (++posted_ - signalled_ == kSignalEvery) {
        made.work.send_flags |= IBV_SEND_SIGNALED;
        signalled_ = posted_;
    }
    return &made;
}

void OutgoingLane::flush() {
    if (sent_ == posted_ || !open()) return;
    for (std::uint64_t number = sent_; number + 1 != posted_; ++number)
        request(number).work.next = &request(number + 1).work;
    request(posted_ - 1).work.send_flags |= IBV_SEND_SIGNALED;
    signalled_ = posted_;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(pair_->raw(), &request(sent_).work, &bad);
    sent_ = posted_;
    if (error != 0) break_off(std::string("cannot post a write: ") + std::strerror(error));
}

void OutgoingLane::completed(const ibv_wc& completion) {
    if (broken_) return;
    if (completion.status != IBV_WC_SUCCESS) {
        // What it was does not matter: the queue pair is in error, and all behind it is unknown (F4).
        const bool refused = completion.status == IBV_WC_REM_ACCESS_ERR || completion.status == IBV_WC_REM_INV_REQ_ERR;
        return break_off(std::string("queue pair in error (") + ibv_wc_status_str(completion.status) + ")" +
                         (refused ? ": the peer has revoked it" : ""));
    }
    // A completion stands for all requests before it, which have landed in order (F1).
    LOCKSTEP_CHECK_OP(completion.wr_id, >=, landed_);
    LOCKSTEP_CHECK_OP(completion.wr_id, <, sent_);
    landed_ = completion.wr_id + 1;
}

std::shared_ptr<QueuePair> OutgoingLane::release() {
    // Before it is connected nothing was posted; and a worker may be at it.
    if (pair_ && sent_ > 0) {
        const Result<void> stopped = pair_->stop();
        if (!stopped) logger().critical("lane to r{}: {}", peer_.value, stopped.error().message());
        LOCKSTEP_CHECK(stopped.ok());  // otherwise the card may go on reading the ring
    }
    return std::exchange(pair_, nullptr);
}

void OutgoingLane::break_off(const std::string& why) {
    if (broken_) return;
    broken_ = true;
    why_broken_ = "lane to r" + std::to_string(peer_.value) + ": " + why;
}

void OutgoingLane::tick(unsigned patience) {
    const bool waits = landed_ != sent_ || !open();
    idle_ticks_ = waits && landed_ == landed_at_tick_ ? idle_ticks_ + 1 : 0;
    landed_at_tick_ = landed_;
    if (idle_ticks_ > patience)
        break_off(open() ? "no completion for too long" : "it was not let in in time");
}

}  // namespace lockstep::transport::rdma
