#include "transport/tcp/outgoing_lane.h"

#include "log/check.h"

#include <boost/asio/buffer.hpp>

#include <cstring>

namespace lockstep::transport::tcp {

OutgoingLane::OutgoingLane(link::Initiator& initiator, LaneId id, ReplicaId peer)
    : initiator_(initiator), id_(id), peer_(peer), deadline_(initiator.context), news_(id, peer) {}

void OutgoingLane::connect(const link::Endpoint& peer, const link::LaneToken& token) {
    link::Hello hello;
    hello.cluster_id = initiator_.self.cluster_id;
    hello.sender = initiator_.self.id;
    hello.target = peer_;
    hello.incarnation = initiator_.self.incarnation;
    hello.ring_bytes = initiator_.self.ring_bytes;
    hello.kind = link::LinkKind::lane;
    hello.token = token;
    hello_ = encode(hello);
    auto socket = link::make_socket(initiator_.context, peer, initiator_.source);
    if (!socket) return break_off(socket.error().message());
    socket_ = std::move(socket).value();
    deadline_.expires_after(initiator_.handshake_timeout);
    deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error && !self->admitted_) self->break_off("no answer to its hello in time");
    });
    socket_->async_connect(peer, [self = shared_from_this()](const boost::system::error_code& error) {
        if (self->broken_ || self->ended_) return;
        if (error) return self->break_off(error.message());
        self->connected_ = true;
        self->receive();
        self->send();
    });
}

bool OutgoingLane::write(Position at, std::uint64_t bytes) {
    LOCKSTEP_CHECK_OP(bytes, >, 0);
    LOCKSTEP_CHECK_OP(bytes, <=, kMaxTransferBytes);
    LOCKSTEP_CHECK_OP(at.value % kWriteAlignment, ==, 0);
    LOCKSTEP_CHECK_OP(at.value, >=, end_.value);
    LOCKSTEP_CHECK_OP((at.value & (initiator_.ring.size() - 1)) + bytes, <=, initiator_.ring.size());
    if (!post({at.value, static_cast<std::uint32_t>(bytes), LaneKind::write, kLaneMark})) return false;
    end_ = at + bytes;
    return true;
}

bool OutgoingLane::probe(std::uint64_t number) { return post({number, 0, LaneKind::probe, kLaneMark}); }

bool OutgoingLane::post(const LaneHeader& header) {
    if (broken_ || posted_ - landed_ == kMaxUnfinishedWrites) return false;
    frame(posted_++) = header;
    return true;
}

void OutgoingLane::flush() {
    if (sent_ != posted_ && connected_ && !waits_for_room_ && !broken_) send();
}

void OutgoingLane::send() {
    std::array<iovec, 1 + 2 * kMaxUnfinishedWrites> pieces;
    std::size_t count = 0;
    const std::size_t bytes = gather(pieces, count);
    if (bytes == 0) return;
    const link::Moved moved = link::send_some(socket_->native_handle(), std::span(pieces).first(count));
    if (moved.error != 0 && !moved.would_block()) return break_off(std::strerror(moved.error));
    sent(moved.bytes);
    if (moved.bytes < bytes) await_room();
}

std::size_t OutgoingLane::gather(std::array<iovec, 1 + 2 * kMaxUnfinishedWrites>& pieces, std::size_t& count) {
    std::size_t bytes = 0;
    const auto add = [&](const void* at, std::size_t size, std::size_t done) {
        if (size == done) return;
        pieces[count++] = {const_cast<char*>(static_cast<const char*>(at)) + done, size - done};
        bytes += size - done;
    };
    if (hello_sent_ < hello_.size()) add(hello_.data(), hello_.size(), hello_sent_);
    std::size_t done = sent_of_next_;
    for (std::uint64_t number = sent_; number != posted_; ++number) {
        const LaneHeader& header = frame(number);
        const std::size_t of_header = std::min(done, sizeof header);
        add(&header, sizeof header, of_header);
        if (header.kind == LaneKind::write)
            add(initiator_.ring.data() + (header.at & (initiator_.ring.size() - 1)), header.bytes, done - of_header);
        done = 0;
    }
    return bytes;
}

void OutgoingLane::sent(std::size_t bytes) {
    const std::size_t of_hello = std::min(bytes, hello_.size() - hello_sent_);
    hello_sent_ += of_hello;
    bytes -= of_hello;
    while (bytes > 0) {
        const std::size_t left = sizeof(LaneHeader) + frame(sent_).bytes - sent_of_next_;
        if (bytes < left) {
            sent_of_next_ += bytes;
            return;
        }
        bytes -= left;
        sent_of_next_ = 0;
        ++sent_;
    }
}

void OutgoingLane::await_room() {
    waits_for_room_ = true;
    socket_->async_wait(link::Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
        self->waits_for_room_ = false;
        if (!error && !self->broken_ && !self->ended_) self->send();
    });
}

void OutgoingLane::watch() {
    if (connected_ && !watching_ && !broken_) receive();
}

void OutgoingLane::receive() {
    watching_ = true;
    socket_->async_read_some(
        boost::asio::buffer(received_.data() + received_count_, received_.size() - received_count_),
        [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
            self->watching_ = false;
            if (self->broken_ || self->ended_) return;
            Result<void> taken = error ? Result<void>(Error(error.message())) : self->take(count);
            if (!taken) self->break_off(taken.error().message());
        });
}

Result<void> OutgoingLane::take(std::size_t count) {
    received_count_ += count;
    if (!admitted_)
        if (auto answered = take_answer(); !answered || !admitted_) return answered;
    return take_acknowledgements();
}

Result<void> OutgoingLane::take_answer() {
    auto parsed = link::parse_answer(std::span<const std::byte>(received_).first(received_count_));
    if (!parsed) return std::move(parsed).error();
    if (!parsed.value()) return {};
    const link::Answer& answer = parsed.value()->message;
    if (!answer.ok) return Error("refused: " + answer.refusal);
    admitted_ = true;
    deadline_.cancel();
    received_count_ -= parsed.value()->bytes;
    std::memmove(received_.data(), received_.data() + parsed.value()->bytes, received_count_);
    return {};
}

Result<void> OutgoingLane::take_acknowledgements() {
    std::size_t at = 0;
    for (; received_count_ - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
        std::uint64_t count = 0;
        std::memcpy(&count, received_.data() + at, sizeof count);
        if (count < landed_ || count > sent_)
            return Error("it acknowledges " + std::to_string(count) + " frames, and " + std::to_string(sent_) +
                         " were sent, " + std::to_string(landed_) + " acknowledged before");
        landed_ = count;
    }
    received_count_ -= at;
    std::memmove(received_.data(), received_.data() + at, received_count_);
    return {};
}

void OutgoingLane::break_off(const std::string& why) {
    if (broken_ || ended_) return;
    broken_ = true;
    why_broken_ = "lane to r" + std::to_string(peer_.value) + ": " + why;
    deadline_.cancel();
    socket_.reset();
}

void OutgoingLane::end() {
    ended_ = true;
    deadline_.cancel();
    socket_.reset();
}

}  // namespace lockstep::transport::tcp
