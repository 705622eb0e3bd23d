// The holder's end of a lane: frames go out straight from the own ring, acknowledgements come in. Protocol thread.
#pragma once

#include "transport/link/initiator.h"
#include "transport/link/lane_news.h"
#include "transport/link/sockets.h"
#include "transport/tcp/wire.h"

#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace lockstep::transport::tcp {

class OutgoingLane : public std::enable_shared_from_this<OutgoingLane> {
 public:
    OutgoingLane(link::Initiator& initiator, LaneId id, ReplicaId peer);

    // Frames may be posted from here on; they go out when the connection stands, right behind the hello.
    void connect(const link::Endpoint& peer, const link::LaneToken& token);
    // See Fabric.
    bool write(Position at, std::uint64_t bytes);
    bool probe(std::uint64_t number);
    void flush();
    // Watches for acknowledgements again, after some have come. Once per turn, when there is time: it costs a system
    // call, which the turn that they have woken need not wait for.
    void watch();
    // No event comes after this, and no byte of the ring is read.
    void end();

    LaneId id() const { return id_; }
    ReplicaId peer() const { return peer_; }
    bool broken() const { return broken_; }
    // Whether there is news, which `report` appends to `events` and then is none.
    bool has_news() const { return news_.any(landed_, broken_); }
    void report(std::vector<Event>& events) { news_.report(landed_, broken_, why_broken_, events); }
    void break_off(const std::string& why);

 private:
    static constexpr std::size_t kReceiveBytes = 1024;
    static_assert(kReceiveBytes >= link::kMaxHandshakeBytes);

    LaneHeader& frame(std::uint64_t number) { return frames_[number % kMaxUnfinishedWrites]; }
    bool post(const LaneHeader& header);
    void send();
    // The hello's rest and the frames from sent_ on, as pieces to send; their bytes all together.
    std::size_t gather(std::array<iovec, 1 + 2 * kMaxUnfinishedWrites>& pieces, std::size_t& count);
    void sent(std::size_t bytes);
    void await_room();
    void receive();
    // Looks at what has been received; an error ends the lane.
    Result<void> take(std::size_t count);
    Result<void> take_answer();
    Result<void> take_acknowledgements();

    link::Initiator& initiator_;
    const LaneId id_;
    const ReplicaId peer_;
    std::optional<link::Socket> socket_;
    boost::asio::steady_timer deadline_;  // of the handshake
    bool connected_ = false;              // the hello and frames may go out
    bool admitted_ = false;               // the peer has let this lane in
    bool waits_for_room_ = false;         // the socket takes no more for now
    bool watching_ = false;               // a receive is under way
    bool broken_ = false;
    bool ended_ = false;
    std::string why_broken_;
    link::LaneNews news_;

    std::string hello_;
    std::size_t hello_sent_ = 0;
    // Frames are numbered from 0. [landed_, sent_) are on their way, [sent_, posted_) are not sent wholly.
    std::array<LaneHeader, kMaxUnfinishedWrites> frames_{};
    std::uint64_t posted_ = 0;
    std::uint64_t sent_ = 0;
    std::size_t sent_of_next_ = 0;        // bytes of frame sent_ that are sent
    std::uint64_t landed_ = 0;
    Position end_;                        // of the write posted last

    std::array<std::byte, kReceiveBytes> received_;
    std::size_t received_count_ = 0;
};

}  // namespace lockstep::transport::tcp
