// What the connections that peers have opened to this replica act on, and what a transport adds to them.
#pragma once

#include "transport/link/handshake.h"
#include "transport/link/mailbox.h"
#include "transport/link/memory.h"
#include "transport/link/sockets.h"
#include "transport/link/waker.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace lockstep::transport::link {

// Takes over the connections that ask for a lane. Acceptor thread.
class LaneDoor {
 public:
    // Sends `answer`, and takes `socket` over with the `early` bytes that came behind the hello. The error is the
    // refusal's text.
    virtual Result<void> let_in(const Hello& hello, Socket& socket, std::span<const std::byte> early,
                                const std::string& answer) = 0;
    // Whether there is a lane, on whose bytes somebody waits.
    virtual bool has_lane() const = 0;
    // The acceptor ends: no handler of the door's runs any more.
    virtual void close() = 0;

 protected:
    ~LaneDoor() = default;
};

// Who has made a call, and the way back.
struct Caller {
    ReplicaId peer;
    Incarnation incarnation;
    std::uint64_t connection = 0;  // of the peer's control connections the one that the call came on
    // Answers, at most kMaxCallBytes; may be used again later. Any thread, while the station lives; does not block.
    // Lost if the connection is gone.
    std::function<void(std::string)> reply;
};

// Answers the calls of peers: what a transport has to say to them besides the fabric's own operations.
class CallDesk {
 public:
    // Acceptor thread: must not wait for anything.
    virtual void called(const Caller& caller, std::span<const std::byte> call) = 0;
    virtual void gone(ReplicaId peer, std::uint64_t connection) = 0;

 protected:
    ~CallDesk() = default;
};

// All of it outlives the acceptor thread.
struct Target {
    const Identity& self;
    const RingMemory& memory;
    const BoardCell& board;
    Mailbox& mailbox;
    Waker& waker;
    LaneDoor* lanes = nullptr;  // null: lanes over TCP are refused
    CallDesk* calls = nullptr;  // null: calls get an empty reply
};

}  // namespace lockstep::transport::link
