#include "transport/link/control_connection.h"

#include "log/check.h"
#include "transport/logger.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstring>

namespace lockstep::transport::link {

ControlConnection::ControlConnection(Socket socket, ReplicaId peer, Incarnation incarnation, std::uint64_t number,
                                     const Target& target, boost::asio::io_context& context)
    : socket_(std::move(socket)), peer_(peer), incarnation_(incarnation), number_(number), target_(target),
      context_(context), frames_(Expect::requests, target.memory.ring().size()),
      out_(sizeof(ControlHeader) + kMaxPieceBytes) {}

void ControlConnection::start(std::span<const std::byte> early) {
    std::copy(early.begin(), early.end(), frames_.room().begin());
    take(early.size());
    if (!closed_) receive();
}

void ControlConnection::receive() {
    const std::span<std::byte> room = frames_.room();
    socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
                                if (self->closed_) return;
                                if (error) return self->close(error.message());
                                self->take(count);
                                if (!self->closed_) self->receive();
                            });
}

void ControlConnection::take(std::size_t count) {
    frames_.add(count);
    news_ = false;
    for (;;) {
        auto frame = frames_.next();
        Result<void> handled = frame ? Result<void>() : Result<void>(frame.error());
        if (handled && !frame.value()) break;
        if (handled) handled = handle(*frame.value());
        if (handled) continue;
        logger().error("control connection of r{}: {}: closed", peer_.value, handled.error().message());
        close("a frame that makes no sense");
        break;
    }
    if (news_) target_.waker.wake();
    answer();
}

Result<void> ControlConnection::handle(const FrameBuffer::Frame& frame) {
    switch (frame.header.kind) {
        case ControlKind::message:
            news_ |= target_.mailbox.put_message(peer_, incarnation_, frame.payload);
            return {};
        case ControlKind::report: {
            Report report;
            std::memcpy(&report, frame.payload.data(), sizeof report);
            news_ |= target_.mailbox.put_report(peer_, incarnation_, report);
            return {};
        }
        case ControlKind::ask_board:
            owes_board_ = true;
            return {};
        case ControlKind::call:
            if (target_.calls == nullptr) {
                if (replies_.size() < kMaxOwedReplies) replies_.push_back({frame.header.number, {}});
                return {};
            }
            target_.calls->called(caller(frame.header.number), frame.payload);
            return {};
        default:
            if (read_count_ == reads_.size())
                return Error("more than " + std::to_string(reads_.size()) + " ring reads at once");
            reads_[(first_read_ + read_count_++) % reads_.size()] = {frame.header.number, frame.header.at,
                                                                     frame.header.wanted};
            return {};
    }
}

Caller ControlConnection::caller(std::uint64_t number) {
    return {peer_, incarnation_, number_, [weak = weak_from_this(), &context = context_, number](std::string bytes) {
                boost::asio::post(context, [weak, number, bytes = std::move(bytes)]() mutable {
                    if (const auto self = weak.lock()) self->reply(number, std::move(bytes));
                });
            }};
}

void ControlConnection::reply(std::uint64_t number, std::string bytes) {
    LOCKSTEP_CHECK_OP(bytes.size(), <=, kMaxCallBytes);
    if (closed_ || replies_.size() == kMaxOwedReplies) return;
    replies_.push_back({number, std::move(bytes)});
    answer();
}

void ControlConnection::answer() {
    while (!closed_ && !out_waits_ && (out_begin_ < out_end_ || fill())) {
        const iovec piece{out_.data() + out_begin_, out_end_ - out_begin_};
        const Moved moved = send_some(socket_.native_handle(), std::span(&piece, 1));
        if (moved.would_block()) {
            out_waits_ = true;
            socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
                self->out_waits_ = false;
                if (!error) self->answer();
            });
            return;
        }
        if (moved.error != 0) return close(std::strerror(moved.error));
        out_begin_ += moved.bytes;
    }
}

bool ControlConnection::fill() {
    if (owes_board_) {
        owes_board_ = false;
        const Board board = target_.board.read();
        put_header({ControlKind::board, sizeof board, 0, 0, 0});
        std::memcpy(out_.data() + sizeof(ControlHeader), &board, sizeof board);
        return true;
    }
    if (!replies_.empty()) {
        const Reply& reply = replies_.front();
        put_header({ControlKind::reply, static_cast<std::uint32_t>(reply.bytes.size()), reply.number, 0, 0});
        std::memcpy(out_.data() + sizeof(ControlHeader), reply.bytes.data(), reply.bytes.size());
        replies_.pop_front();
        return true;
    }
    if (read_count_ == 0) return false;
    Read& read = reads_[first_read_];
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(read.left, kMaxPieceBytes));
    put_header({ControlKind::ring, bytes, read.number, read.at, 0});
    copy_torn(std::span(out_).subspan(sizeof(ControlHeader), bytes), target_.memory.range({read.at}, bytes));
    read.at += bytes;
    read.left -= bytes;
    if (read.left == 0) {
        first_read_ = (first_read_ + 1) % reads_.size();
        --read_count_;
    }
    return true;
}

void ControlConnection::put_header(ControlHeader header) {
    std::memcpy(out_.data(), &header, sizeof header);
    out_begin_ = 0;
    out_end_ = sizeof header + header.bytes;
}

void ControlConnection::close(const std::string& why) {
    if (closed_) return;
    closed_ = true;
    if (target_.calls != nullptr) target_.calls->gone(peer_, number_);
    logger().debug("control connection of r{} closed: {}", peer_.value, why);
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace lockstep::transport::link
