#include "transport/rdma/control_pair.h"

#include "log/check.h"
#include "transport/link/frames.h"
#include "transport/logger.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::transport::rdma {

ControlPair::ControlPair(link::Station& station, const PeerRegions& regions, const SidePages& pages,
                         std::size_t number)
    : station_(station), regions_(regions), pages_(pages), number_(number) {}

void ControlPair::ask(std::shared_ptr<QueuePair> pair, std::uint64_t call) {
    LOCKSTEP_CHECK(pair_ == nullptr);
    pair_ = std::move(pair);
    call_ = call;
}

void ControlPair::up() { up_ = true; }

std::shared_ptr<QueuePair> ControlPair::down() {
    // Its memory is reused by the next one: no answer may come any more.
    if (up_)
        if (auto stopped = pair_->stop(); !stopped) logger().error("control pair: {}", stopped.error().message());
    up_ = false;
    call_ = 0;
    failed_.reset();
    under_way_.clear();
    posted_ = completed_ = completed_at_tick_ = 0;
    idle_ticks_ = 0;
    board_asked_ = false;
    report_.reset();
    report_under_way_ = false;
    for (; !reads_.empty(); reads_.pop_front()) station_.tell_read(reads_.front().id, peer(), false);
    return std::exchange(pair_, nullptr);
}

void ControlPair::post(Kind kind, ibv_wr_opcode opcode, std::span<std::byte> own, std::uint64_t remote,
                       std::uint32_t key) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(own.data()), static_cast<std::uint32_t>(own.size()),
                  regions_.own->lkey};
    ibv_send_wr request{};
    request.wr_id = posted_;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_RDMA_WRITE && own.size() <= pair_->inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    request.wr.rdma.remote_addr = remote;
    request.wr.rdma.rkey = key;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(pair_->raw(), &request, &bad); error != 0) {
        failed_ = std::string("cannot post a request: ") + std::strerror(error);
        return;
    }
    ++posted_;
    under_way_.push_back(kind);
}

void ControlPair::read_board() {
    if (!up_ || board_asked_) return;
    board_asked_ = true;
    post(Kind::board, IBV_WR_RDMA_READ, pages_.read_board(number_), peer_.board.address, peer_.board.key);
}

void ControlPair::read_ring(ReadId read, Position at, std::span<std::byte> into) {
    LOCKSTEP_CHECK_OP(into.size(), >, 0);
    LOCKSTEP_CHECK_OP(into.size(), <=, kMaxTransferBytes);
    const std::uint64_t ring_bytes = station_.memory().ring().size();
    LOCKSTEP_CHECK_OP((at.value & (ring_bytes - 1)) + into.size(), <=, ring_bytes);
    if (!up_ || reads_.size() == link::kMaxUnansweredReads) return station_.tell_read(read, peer(), false);
    reads_.push_back({read, at, into});
    if (reads_.size() == 1) read_piece();
}

void ControlPair::read_piece() {
    const Read& read = reads_.front();
    piece_bytes_ = std::min(read.into.size(), SidePages::kPieceBytes);
    const std::uint64_t offset = read.at.value & (station_.memory().ring().size() - 1);
    post(Kind::piece, IBV_WR_RDMA_READ, pages_.piece(number_).first(piece_bytes_), peer_.ring.address + offset,
         peer_.ring.key);
}

void ControlPair::take_piece() {
    Read& read = reads_.front();
    std::memcpy(read.into.data(), pages_.piece(number_).data(), piece_bytes_);
    read.at = read.at + piece_bytes_;
    read.into = read.into.subspan(piece_bytes_);
    if (read.into.empty()) {
        station_.tell_read(read.id, peer(), true);
        reads_.pop_front();
    }
    if (!reads_.empty()) read_piece();
}

void ControlPair::write_report(const Report& report) {
    if (!up_) return;
    report_ = report;
    if (!report_under_way_) send_report();
}

void ControlPair::send_report() {
    Slot* slot = pages_.report(number_);
    slot->report = *report_;
    slot->writer = station_.options().incarnation.value;
    slot->seal();
    report_.reset();
    report_under_way_ = true;
    post(Kind::report, IBV_WR_RDMA_WRITE, {reinterpret_cast<std::byte*>(slot), kSlotBytes}, peer_.slot.address,
         peer_.slot.key);
}

Result<void> ControlPair::completed(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS)
        return Error(std::string("control queue pair in error (") + ibv_wc_status_str(completion.status) + ")");
    LOCKSTEP_CHECK(!under_way_.empty());
    LOCKSTEP_CHECK_OP(completion.wr_id, ==, completed_);
    ++completed_;
    const Kind kind = under_way_.front();
    under_way_.pop_front();
    switch (kind) {
        case Kind::board: {
            board_asked_ = false;
            Event& event = station_.tell(EventKind::board, peer());
            std::memcpy(static_cast<void*>(&event.board), pages_.read_board(number_).data(), sizeof event.board);
            break;
        }
        case Kind::piece:
            take_piece();
            break;
        case Kind::report:
            report_under_way_ = false;
            if (report_) send_report();
            break;
    }
    return {};
}

Result<void> ControlPair::tick(unsigned patience) {
    if (failed_) return Error(*failed_);
    idle_ticks_ = !under_way_.empty() && completed_ == completed_at_tick_ ? idle_ticks_ + 1 : 0;
    completed_at_tick_ = completed_;
    if (idle_ticks_ > patience) return Error("no completion on the control queue pair for too long");
    return {};
}

}  // namespace lockstep::transport::rdma
