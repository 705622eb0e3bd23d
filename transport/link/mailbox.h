// What the acceptor thread has for the protocol thread: control messages, reports, and who has connected.
#pragma once

#include "transport/link/sockets.h"
#include "transport/types.h"

#include <lockstep/types.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::link {

// Messages beyond these bounds that the protocol thread has not taken yet are dropped: F7 allows it.
inline constexpr std::size_t kMaxQueuedMessages = 4096;
inline constexpr std::size_t kMaxQueuedMessageBytes = std::size_t{4} << 20;

struct Mail {
    struct Message {
        ReplicaId peer;
        Incarnation incarnation;
        std::size_t at = 0;      // in `bytes`
        std::size_t size = 0;
    };
    struct Slot {                // a report slot of this replica, for one peer to write
        ReplicaId peer;
        Incarnation incarnation;
        Report report;
        bool fresh = false;      // not taken yet
    };
    struct Address {             // what a look-up of a peer's host name found
        ReplicaId peer;
        Endpoint endpoint;
        std::string error;       // not empty: nothing
    };

    std::vector<Message> messages;
    std::vector<std::byte> bytes;
    std::vector<Slot> reports;   // fresh ones
    std::vector<ReplicaId> arrivals;  // peers that have opened a control connection
    std::vector<Address> addresses;

    void clear();
};

class Mailbox {
 public:
    explicit Mailbox(const std::vector<ReplicaId>& peers);

    // Acceptor thread. Each says whether there is something new for the protocol thread.
    bool put_message(ReplicaId peer, Incarnation incarnation, std::span<const std::byte> message);
    bool put_report(ReplicaId peer, Incarnation incarnation, const Report& report);
    bool put_arrival(ReplicaId peer);
    void put_address(Mail::Address address);

    // Protocol thread: takes all into `mail`, whose old contents go. False, at the cost of one load, if there is none.
    bool take(Mail& mail);
    bool empty() const { return !filled_.load(std::memory_order_acquire); }

 private:
    std::mutex mutex_;
    std::atomic<bool> filled_{false};
    Mail mail_;                      // below: under mutex_
    std::vector<Mail::Slot> slots_;  // the newest report of each peer, taken or not
};

}  // namespace lockstep::transport::link
