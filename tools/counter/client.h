// What the server knows of one client, and what local commands see of the server.
#pragma once

#include "tools/counter/limits.h"
#include "tools/counter/log.h"
#include "tools/counter/machine.h"
#include "tools/counter/request.h"
#include "tools/counter/router.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

namespace lockstep::counter {

struct Client {
    std::uint64_t id = 0;
    std::string name;
    std::string library;           // as CLIENT SETINFO told
    std::string library_version;
    std::string address;           // "ip:port"
    std::string local_address;
    Resp resp = Resp::v2;
    Clock::time_point since;
    bool quits = false;            // has said QUIT: closed after this answer
};

// What BGSAVE has begun. Any thread.
struct Saves {
    std::atomic<bool> under_way{false};
    std::atomic<bool> last_failed{false};
    std::atomic<std::int64_t> last_s{std::time(nullptr)};  // of the last that succeeded; as Redis, the start until then
};

// Everything that a server has one of. Threads: the server's.
struct Shared {
    Shared(boost::asio::io_context& io, Log& log_, Machine& machine_, ReplicaId self_, const Router::Addresses& others,
           const Limits& limits_, std::function<void()> after_batch)
        : log(log_), machine(machine_), self(self_), limits(limits_),
          router(io, log_, machine_, self_, others, limits, std::move(after_batch)) {}

    Log& log;
    Machine& machine;
    const ReplicaId self;
    const Limits limits;
    Router router;
    std::uint16_t port = 0;
    Clock::time_point started = Clock::now();
    std::uint64_t run_id = 0;               // random, for INFO
    const std::shared_ptr<Saves> saves = std::make_shared<Saves>();  // shared with the snapshot that is being taken
    // Counters.
    std::uint64_t clients_connected = 0;
    std::uint64_t clients_accepted = 0;
    std::uint64_t clients_refused = 0;
    std::uint64_t replicas_connected = 0;   // connections of other replicas that forward to this one
    std::uint64_t commands = 0;             // from clients of this server
    std::uint64_t protocol_errors = 0;
};

}  // namespace lockstep::counter
