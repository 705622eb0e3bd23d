// Finds the one log that can take a group: this replica's own, or that of the leader behind another counter.
#pragma once

#include "tools/counter/completions.h"
#include "tools/counter/limits.h"
#include "tools/counter/log.h"
#include "tools/counter/machine.h"
#include "tools/counter/request.h"
#include "tools/counter/upstream.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::counter {

// What the router counts, for INFO.
struct RouterStats {
    std::uint64_t proposed = 0;       // groups handed to this replica's log
    std::uint64_t read = 0;           // groups that only read, likewise
    std::uint64_t forwarded = 0;      // groups sent to another replica
    std::uint64_t waited = 0;         // attempts put off: no leader known, or no room in its log
    std::uint64_t unknown = 0;        // writes whose outcome is unknown
};

// A request is tried again only where it certainly had no effect (rejected, or it only reads), until its deadline.
// Threads: the server's.
class Router {
 public:
    // Addresses of the other replicas' client ports, "host:port".
    using Addresses = std::map<ReplicaId, std::string>;
    // `after_batch` runs when a number of requests have been answered together.
    Router(boost::asio::io_context& io, Log& log, Machine& machine, ReplicaId self, Addresses others,
           const Limits& limits, std::function<void()> after_batch);
    // Sends `request` on its way. Its `requester`, `group`, `writes` and `from_replica` are set; it ends with a call of
    // `answered`, which is made from inside this one only after `stop`.
    void submit(Request& request);
    // Ends what waits here and drops the connections to other replicas.
    void stop();
    const RouterStats& stats() const { return stats_; }

 private:
    void route(Request& request);
    void to_log(Request& request);
    void completed(Request& request, const Outcome& outcome);
    void forward(Request& request, ReplicaId leader);
    // The request has ended at replica `at`: passes the answer on, or tries again.
    void finished(Request& request, ReplicaId at);
    void rejected(Request& request, ReplicaId at);
    void answer(Request& request);
    void wait(Request& request);
    void release_all();
    void arm_tick();
    void tick();
    void end_expired();
    void arm_watch();
    void watch();
    void flush_upstreams();

    boost::asio::io_context& io_;
    Log& log_;
    Machine& machine_;
    const ReplicaId self_;
    const Addresses others_;
    const Limits& limits_;
    const std::function<void()> after_batch_;
    Completions completions_;

    ReplicaId leader_;                    // where groups go; none: this replica's log is asked who leads
    std::map<ReplicaId, std::shared_ptr<Upstream>> upstreams_;
    bool flush_posted_ = false;
    std::deque<Request*> waiting_;
    Request* probe_ = nullptr;            // of those that waited, the one that is being tried
    Clock::time_point waiting_since_;     // when the queue was last empty
    Clock::time_point expiry_checked_;
    boost::asio::steady_timer tick_timer_;
    bool ticking_ = false;
    boost::asio::steady_timer watch_timer_;
    bool watching_ = false;
    bool stopped_ = false;
    RouterStats stats_;
};

}  // namespace lockstep::counter
