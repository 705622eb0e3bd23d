#include "tools/counter/router.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace lockstep::counter {

namespace asio = boost::asio;

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// While nothing works, one request is tried at a time: often at first, as an election takes a few milliseconds, then
// at intervals of a sixteenth of the time waited so far.
constexpr microseconds kTickMin{250};
constexpr microseconds kTickMax{10'000};
constexpr milliseconds kExpiryInterval{10};
// How often a leader that owes answers is compared with the one that this replica knows.
constexpr milliseconds kWatchInterval{20};
// Replicas asked in a row, each naming another leader, before the request waits.
constexpr std::uint32_t kMaxHops = 3;

}  // namespace

Router::Router(asio::io_context& io, Log& log, Machine& machine, ReplicaId self, Addresses others,
               const Limits& limits, std::function<void()> after_batch)
    : io_(io), log_(log), machine_(machine), self_(self), others_(std::move(others)), limits_(limits),
      after_batch_(std::move(after_batch)),
      completions_(io, [this](std::vector<Request*>& ended) {
          for (Request* request : ended) finished(*request, self_);
          after_batch_();
      }),
      tick_timer_(io), watch_timer_(io) {}

void Router::submit(Request& request) {
    request.deadline = Clock::now() + limits_.patience;
    request.hops = 0;
    if (!request.from_replica && !waiting_.empty()) {
        // Others wait already for the same thing: one of them is tried for all.
        request.end(waiting_.back()->fate, waiting_.back()->reason);
        waiting_.push_back(&request);
        return;
    }
    route(request);
}

void Router::route(Request& request) {
    if (request.from_replica || !leader_ || leader_ == self_) return to_log(request);
    forward(request, leader_);
}

void Router::to_log(Request& request) {
    if (request.writes) {
        ++stats_.proposed;
        const std::string& group = request.group;
        log_.propose(std::as_bytes(std::span(group)),
                     [this, ended = &request](const Outcome& outcome) { completed(*ended, outcome); });
    } else {
        ++stats_.read;
        log_.read([this, ended = &request](const Outcome& outcome) { completed(*ended, outcome); });
    }
}

// On the log's thread.
void Router::completed(Request& request, const Outcome& outcome) {
    request.end(outcome.fate, outcome.reason, outcome.leader);
    if (outcome.fate == Fate::applied) {
        if (request.writes) {
            request.reply.assign(reinterpret_cast<const char*>(outcome.reply.data()), outcome.reply.size());
        } else {
            machine_.read(request.group, request.reply);
        }
    }
    completions_.push(request);
}

void Router::forward(Request& request, ReplicaId leader) {
    const auto address = others_.find(leader);
    if (address == others_.end()) {
        // A leader whose client port is not configured cannot be reached from here.
        request.end(Fate::rejected, Reason::not_leader);
        return wait(request);
    }
    ++stats_.forwarded;
    auto& upstream = upstreams_[leader];
    if (!upstream || upstream->closed()) {
        upstream = std::make_shared<Upstream>(io_, leader, address->second, limits_,
                                              [this](Request& ended, ReplicaId at) { finished(ended, at); });
        upstream->start();
    }
    upstream->send(request);
    if (!flush_posted_) {
        flush_posted_ = true;
        asio::post(io_, [this] { flush_upstreams(); });
    }
    arm_watch();
}

void Router::flush_upstreams() {
    flush_posted_ = false;
    // A copy: a connection that breaks while it is flushed may be replaced in the map.
    std::vector<std::shared_ptr<Upstream>> upstreams;
    for (const auto& [id, upstream] : upstreams_) upstreams.push_back(upstream);
    for (const auto& upstream : upstreams) upstream->flush_sends();
}

void Router::finished(Request& request, ReplicaId at) {
    if (probe_ == &request) probe_ = nullptr;
    if (request.from_replica) return answer(request);
    switch (request.fate) {
        case Fate::applied:
            leader_ = at;
            answer(request);
            return release_all();
        case Fate::rejected: return rejected(request, at);
        case Fate::unknown:
            if (leader_ == at) leader_ = {};
            if (request.writes) {
                ++stats_.unknown;
                return answer(request);
            }
            // A read has no effect: it may be done again.
            request.end(Fate::rejected, Reason::not_leader);
            return wait(request);
    }
}

void Router::rejected(Request& request, ReplicaId at) {
    switch (request.reason) {
        case Reason::not_leader:
            leader_ = request.leader == at ? ReplicaId{} : request.leader;
            // Others that wait are let go when this one has been applied: the leader named may be dead.
            if (leader_ && ++request.hops < kMaxHops) return route(request);
            return wait(request);
        case Reason::stopped:
            if (at == self_) return answer(request);
            leader_ = {};
            request.reason = Reason::not_leader;
            return wait(request);
        case Reason::busy: return wait(request);
        case Reason::none:
        case Reason::too_large: return answer(request);
    }
}

void Router::answer(Request& request) {
    const auto requester = std::move(request.requester);
    request.requester.reset();
    requester->answered(request);
}

void Router::wait(Request& request) {
    ++stats_.waited;
    request.hops = 0;
    if (probe_ == &request) probe_ = nullptr;
    if (stopped_) {
        request.end(Fate::rejected, Reason::stopped);
        return answer(request);
    }
    if (waiting_.empty()) waiting_since_ = Clock::now();
    waiting_.push_back(&request);
    arm_tick();
}

void Router::release_all() {
    std::deque<Request*> released;
    released.swap(waiting_);
    for (Request* request : released) route(*request);
}

void Router::arm_tick() {
    if (ticking_ || waiting_.empty() || stopped_) return;
    ticking_ = true;
    const auto waited = duration_cast<microseconds>(Clock::now() - waiting_since_);
    tick_timer_.expires_after(std::clamp(waited / 16, kTickMin, kTickMax));
    tick_timer_.async_wait([this](boost::system::error_code error) {
        ticking_ = false;
        if (!error) tick();
    });
}

void Router::tick() {
    end_expired();
    if (probe_ == nullptr && !waiting_.empty()) {
        probe_ = waiting_.front();
        waiting_.pop_front();
        route(*probe_);
    }
    arm_tick();
}

void Router::end_expired() {
    const auto now = Clock::now();
    if (now - expiry_checked_ < kExpiryInterval) return;
    expiry_checked_ = now;
    std::vector<Request*> expired;
    std::erase_if(waiting_, [&](Request* request) {
        const bool over = request->deadline <= now || request->requester->gone();
        if (over) expired.push_back(request);
        return over;
    });
    // Answering may bring new requests in: the queue is in order again by now.
    for (Request* request : expired) answer(*request);
}

void Router::arm_watch() {
    if (watching_ || stopped_) return;
    watching_ = true;
    watch_timer_.expires_after(kWatchInterval);
    watch_timer_.async_wait([this](boost::system::error_code error) {
        watching_ = false;
        if (!error) watch();
    });
}

// A leader that is stopped, or cut off, answers nothing and breaks nothing: when this replica knows of a later one, or
// the time is over, those who wait are told that the outcome is unknown.
void Router::watch() {
    std::vector<std::shared_ptr<Upstream>> owing;
    for (const auto& [id, upstream] : upstreams_) {
        if (!upstream->closed() && !upstream->idle()) owing.push_back(upstream);
    }
    if (owing.empty()) return;
    const ReplicaId leader = log_.status().leader;
    const auto now = Clock::now();
    for (const auto& upstream : owing) {
        const bool deposed = leader && leader != upstream->peer() && now - upstream->last_progress() > kWatchInterval;
        if (!deposed && now - upstream->last_progress() < limits_.forward_timeout) continue;
        if (leader_ == upstream->peer()) leader_ = {};
        upstream->close();
    }
    arm_watch();
}

void Router::stop() {
    stopped_ = true;
    tick_timer_.cancel();
    watch_timer_.cancel();
    auto upstreams = std::move(upstreams_);
    upstreams_.clear();
    for (const auto& [id, upstream] : upstreams) upstream->close();
    std::deque<Request*> waiting;
    waiting.swap(waiting_);
    for (Request* request : waiting) {
        request->end(Fate::rejected, Reason::stopped);
        answer(*request);
    }
}

}  // namespace lockstep::counter
