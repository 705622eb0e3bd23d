// All of a fabric but its lanes and its fence: the replica's memory, its peer port, its control links, and how its
// protocol thread waits. Each transport puts the rest to it.
#pragma once

#include "transport/fabric.h"
#include "transport/link/acceptor.h"
#include "transport/link/control_link.h"
#include "transport/link/errands.h"
#include "transport/link/mailbox.h"
#include "transport/link/memory.h"
#include "transport/link/sleeper.h"
#include "transport/link/target.h"
#include "transport/link/waker.h"

#include <lockstep/options.h>
#include <lockstep/result.h>
#include <lockstep/types.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::transport::link {

struct PeerAddress {
    ReplicaId id;
    std::string host;                          // an address or a name
    std::uint16_t port = 0;                    // 0: not known yet, see set_peer_address
};

struct StationOptions {
    std::uint64_t cluster_id = 0;              // not 0; the handshake refuses another
    ReplicaId id;
    Incarnation incarnation;                   // of this life; not 0
    std::uint64_t ring_bytes = 0;              // a power of two, at least a page; the handshake refuses another
    std::vector<PeerAddress> peers;            // without this replica; at most 254
    std::string listen_host = "127.0.0.1";
    std::uint16_t listen_port = 0;             // 0: the system picks one, see listen_port()
    Polling polling = Polling::blocking;
    std::uint32_t spin_us = 50;                // for Polling::adaptive
    bool wakes_at_landing = false;             // a commit waits for what the owner does with what has landed
    std::chrono::milliseconds handshake_timeout{1000};  // to connect and be answered, and for a stranger to say hello
};

// What a transport adds. Each may be null; all outlive the station.
struct Fittings {
    LaneDoor* lanes = nullptr;
    CallDesk* calls = nullptr;
    LinkWatcher* watcher = nullptr;
    WorkSource* source = nullptr;
};

// The first address of `host`, a name or an address, as text. Blocks for a look-up.
Result<std::string> resolve(const std::string& host);

class Station {
 public:
    // Checks the options and maps the memory. Nothing is reached before `start`.
    static Result<std::unique_ptr<Station>> make(const StationOptions& options, Pages pages);
    // Ends the acceptor thread and closes every connection.
    ~Station();

    // Listens, and starts the acceptor thread; `poll` connects to the peers. Once. Blocks for a look-up of
    // `listen_host`.
    Result<void> start(const Fittings& fittings);
    // Ends the acceptor thread and closes every peer's connection; nothing but the destructor may be called after.
    void end() { acceptor_.reset(); }

    const StationOptions& options() const { return options_; }
    RingMemory& memory() { return memory_; }
    BoardCell& board() { return board_; }
    Waker& waker() { return *waker_; }
    Mailbox& mailbox() { return mailbox_; }
    Initiator& initiator() { return initiator_; }
    boost::asio::io_context& context() { return context_; }
    std::uint16_t listen_port() const { return acceptor_->port(); }
    const std::vector<std::unique_ptr<ControlLink>>& links() const { return links_; }
    ControlLink* link_to(ReplicaId peer) const;
    void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port);

    // For other threads: lets the protocol thread run `errand` in its next turn, and wakes it. Does not block.
    void post(std::function<void()> errand);
    // An event for the next return of `poll`.
    Event& tell(EventKind kind, ReplicaId peer);
    // Reads of a peer that cannot be reached.
    void tell_read(ReadId read, ReplicaId peer, bool ok);

    // What `poll` of every fabric does around its own: waits, unless there is `news`; then takes in what has come.
    void wait(std::chrono::nanoseconds wait, bool news, bool may_spin);
    // Moves what is to be told to `events`, and returns to the links what is theirs.
    void collect(std::vector<Event>& events);

 private:
    Station(const StationOptions& options, RingMemory memory, std::unique_ptr<Waker> waker);
    void collect_mail(std::vector<Event>& events);

    const StationOptions options_;
    const Identity self_;
    RingMemory memory_;
    BoardCell board_;
    std::unique_ptr<Waker> waker_;
    Mailbox mailbox_;
    Mail mail_;                        // what the events of the last poll point into
    Errands errands_;
    // Only this thread uses the context: no locks in it.
    boost::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
    std::vector<Event> ready_;         // events that arose outside `collect`
    Initiator initiator_;
    std::unique_ptr<Sleeper> sleeper_;
    std::vector<std::unique_ptr<ControlLink>> links_;
    std::unique_ptr<Acceptor> acceptor_;                // last: its thread ends before what it uses
};

}  // namespace lockstep::transport::link
