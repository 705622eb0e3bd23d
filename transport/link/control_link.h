// This replica's control connection to one peer: messages and reports go out, reads of the peer's board and ring are
// asked and answered. Connects, and connects again, by itself. Protocol thread.
#pragma once

#include "transport/link/initiator.h"
#include "transport/link/sockets.h"
#include "transport/link/frames.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::link {

class ControlLink;

// What a transport adds to a control link. Protocol thread.
class LinkWatcher {
 public:
    // The handshake has passed: calls can be made. The peer counts as down until `ready`, or fails after a while.
    virtual void reached(ControlLink& link) = 0;
    // It was reached, and is no longer; nothing may be called from in here. `suspect_dead`: its process likely ended.
    virtual void lost(ControlLink& link, bool suspect_dead) = 0;
    virtual void replied(ControlLink& link, std::uint64_t call, std::span<const std::byte> reply) = 0;

 protected:
    ~LinkWatcher() = default;
};

class ControlLink {
 public:
    // `watcher` may be null: then the peer is up once the handshake has passed.
    ControlLink(Initiator& initiator, ReplicaId peer, LinkWatcher* watcher);

    ReplicaId peer() const { return peer_; }
    // Of the life that was last reached.
    Incarnation incarnation() const { return incarnation_; }
    // Whether calls can be made.
    bool reached() const { return state_ >= State::preparing; }
    bool up() const { return state_ == State::up; }
    // Where the peer listens. With port 0 it is not known yet, and nothing is tried.
    void set_address(const std::string& host, std::uint16_t port);
    void looked_up(const Endpoint& endpoint, const std::string& error);
    // The peer has just reached this replica: no need to wait before it is tried.
    void try_now();
    // The address that was last connected to, for lanes; none if the peer's host is not known.
    const std::optional<Endpoint>& endpoint() const { return endpoint_; }

    // For the watcher. `call`, of at most kMaxCallBytes, goes to the peer's CallDesk; returns its number.
    std::uint64_t call(std::span<const std::byte> call);
    void ready();
    // The link is of no use: it is given up and tried again.
    void give_up(const std::string& why) { fail(why, false); }

    // See Fabric. They gather; `push` sends on.
    void ask_board();
    void ask_ring(ReadId read, Position at, std::span<std::byte> into);
    void write_report(const Report& report);
    void send(std::span<const std::byte> message);
    void push();

    std::string path() const;

 private:
    enum class State : std::uint8_t {
        idle,        // no address
        pausing,     // until the next try
        looking_up,
        connecting,
        greeting,    // connected, the hello is on its way, the answer is not here
        preparing,   // the handshake has passed; the watcher has not said `ready`
        up,
    };
    struct Read {
        ReadId id;
        Position at;                 // the next byte wanted
        std::span<std::byte> into;   // the rest of it
    };
    enum class Told : std::uint8_t { nothing, up, down, dead };  // the last event about this peer

    // Bytes that wait to be sent; a message that goes beyond is dropped (F7).
    static constexpr std::size_t kMaxWaitingBytes = std::size_t{1} << 20;

    void try_to_connect();
    void connect();
    void greet();
    void receive_answer();
    Result<void> take_answer(std::size_t count);
    void reach(const Answer& answer);
    void receive();
    Result<void> take();
    Result<void> take_piece(const FrameBuffer::Frame& frame);
    void fail(const std::string& why, bool suspect_dead);
    void fail(const boost::system::error_code& error);
    void pause();
    void set_deadline();
    void put(const ControlHeader& header, std::span<const std::byte> payload);
    Event& tell(EventKind kind);
    void tell_read(ReadId read, bool ok);

    Initiator& initiator_;
    const ReplicaId peer_;
    LinkWatcher* const watcher_;
    Incarnation incarnation_;
    std::uint64_t calls_ = 0;              // made so far
    std::string host_;
    std::uint16_t port_ = 0;
    std::optional<Endpoint> endpoint_;

    State state_ = State::idle;
    Told told_ = Told::nothing;
    std::string why_down_ = "its address is not known yet";
    std::uint64_t life_ = 0;               // of the connection: handlers of an old one do nothing
    std::optional<Socket> socket_;
    boost::asio::steady_timer timer_;      // the pause's end or the handshake's deadline
    std::chrono::milliseconds backoff_;
    std::chrono::steady_clock::time_point up_since_;

    std::vector<std::byte> out_;           // waits to be sent
    bool out_waits_ = false;               // the socket takes no more for now
    std::optional<Report> report_;         // waits to be put into out_
    FrameBuffer frames_;                   // before the connection is up: the answer's bytes
    bool board_asked_ = false;
    std::deque<Read> reads_;               // asked and not answered wholly, in order
};

}  // namespace lockstep::transport::link
