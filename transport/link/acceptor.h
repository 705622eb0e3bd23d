// The peer port, on a thread of its own: takes what peers connect for, whatever the protocol thread does. Over TCP it
// plays the part that a network card plays for RDMA: writes land and reads are answered here.
#pragma once

#include "transport/link/control_connection.h"
#include "transport/link/greeter.h"
#include "transport/link/sockets.h"
#include "transport/link/target.h"

#include <lockstep/options.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::transport::link {

class Acceptor {
 public:
    struct Manner {
        std::chrono::milliseconds handshake_timeout;
        // While there is an incoming lane the thread waits as `polling` says, otherwise it sleeps.
        Polling polling;
        std::chrono::microseconds spin;
    };

    // Listens at `host`, a name or an address, and `port` (0: the system picks one). Blocks for a look-up of `host`.
    // Error: it cannot be looked up or bound.
    static Result<std::unique_ptr<Acceptor>> listen(const Target& target, const std::string& host, std::uint16_t port,
                                                    const Manner& manner);
    // Ends the thread and closes every connection.
    ~Acceptor();

    // Starts the thread. Once.
    void start();
    std::uint16_t port() const { return port_; }
    const boost::asio::ip::address& address() const { return address_; }
    // Looks a peer's address up, in the background; the outcome comes through the mailbox. Any thread.
    void look_up(ReplicaId peer, const std::string& host, std::uint16_t port);

 private:
    // Connections that have not passed the handshake; beyond that the oldest is closed.
    static constexpr std::size_t kMaxGreeters = 64;

    Acceptor(const Target& target, const Manner& manner);
    Result<void> bind(const std::string& host, std::uint16_t port);
    void run();
    void accept_next();
    void accept_one();
    void greet(Socket socket);
    Result<void> decide(const Hello& hello, Socket& socket, std::span<const std::byte> early);
    Result<void> let_in(const Hello& hello, Socket& socket, std::span<const std::byte> early);
    void log_refusal(const std::string& text);

    const Target target_;
    const Manner manner_;
    boost::asio::io_context context_{1};
    boost::asio::ip::tcp::acceptor listener_{context_};
    boost::asio::ip::tcp::resolver resolver_{context_};
    boost::asio::steady_timer pause_{context_};  // after an accept that failed: descriptors may be used up
    std::uint16_t port_ = 0;
    boost::asio::ip::address address_;
    std::vector<std::shared_ptr<Greeter>> greeters_;                       // oldest first
    std::map<ReplicaId, std::shared_ptr<ControlConnection>> controls_;     // the newest of each peer
    std::uint64_t connections_ = 0;                                        // controls so far
    std::string last_refusal_;                                             // logged, at ...
    std::chrono::steady_clock::time_point last_refusal_at_;
    std::thread thread_;
};

}  // namespace lockstep::transport::link
