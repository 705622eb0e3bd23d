// This replica's end of a peer's control connection: takes the peer's messages and reports, answers its reads of the
// board and the ring, hands its calls to the transport. Acceptor thread; it never waits for the protocol thread.
#pragma once

#include "transport/link/sockets.h"
#include "transport/link/target.h"
#include "transport/link/frames.h"

#include <boost/asio/io_context.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::link {

class ControlConnection : public std::enable_shared_from_this<ControlConnection> {
 public:
    // `number` tells it from others of the same peer.
    ControlConnection(Socket socket, ReplicaId peer, Incarnation incarnation, std::uint64_t number,
                      const Target& target, boost::asio::io_context& context);

    // `early` are bytes that came along with the hello.
    void start(std::span<const std::byte> early);
    void close(const std::string& why);
    bool closed() const { return closed_; }
    // Owes the peer a reply to its call `number`.
    void reply(std::uint64_t number, std::string bytes);

 private:
    // Replies that wait to be sent; beyond that they are dropped, as a peer that does not read them can do without.
    static constexpr std::size_t kMaxOwedReplies = 64;

    struct Reply {
        std::uint64_t number = 0;
        std::string bytes;
    };
    struct Read {
        std::uint64_t number = 0;
        std::uint64_t at = 0;
        std::uint64_t left = 0;
    };

    void receive();
    void take(std::size_t count);
    // Error: the peer breaks the protocol.
    Result<void> handle(const FrameBuffer::Frame& frame);
    void answer();
    // Puts the next answer, or piece of one, into out_; false if none is owed.
    bool fill();
    void put_header(ControlHeader header);
    Caller caller(std::uint64_t number);

    Socket socket_;
    const ReplicaId peer_;
    const Incarnation incarnation_;
    const std::uint64_t number_;
    const Target& target_;
    boost::asio::io_context& context_;
    FrameBuffer frames_;
    bool news_ = false;           // for the protocol thread, in this turn
    bool owes_board_ = false;
    std::deque<Reply> replies_;   // owed
    std::array<Read, kMaxUnansweredReads> reads_;  // a ring of unanswered reads, in order
    std::size_t first_read_ = 0;
    std::size_t read_count_ = 0;
    std::vector<std::byte> out_;  // one frame
    std::size_t out_begin_ = 0;   // [out_begin_, out_end_) is not sent yet
    std::size_t out_end_ = 0;
    bool out_waits_ = false;      // the socket takes no more for now
    bool closed_ = false;
};

}  // namespace lockstep::transport::link
