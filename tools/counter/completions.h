// The way back from the replica's thread to the server's.
#pragma once

#include "tools/counter/request.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::counter {

// Requests that have ended at the log. Many that end together cost one wake-up. Threads: `push` from any; the rest
// from the server's.
class Completions {
 public:
    // `drain` runs on the server's thread, once for all that has gathered.
    Completions(boost::asio::io_context& io, std::function<void(std::vector<Request*>&)> drain)
        : io_(io), drain_(std::move(drain)) {}

    void push(Request& request) {
        const std::lock_guard lock(mutex_);
        const bool wake = gathered_.empty();
        gathered_.push_back(&request);
        // Under the lock, so that once a request is taken nothing of its completion is left to do on this thread.
        if (wake) boost::asio::post(io_, [this] { run(); });
    }

 private:
    void run() {
        {
            const std::lock_guard lock(mutex_);
            taken_.swap(gathered_);
        }
        drain_(taken_);
        taken_.clear();
    }

    boost::asio::io_context& io_;
    const std::function<void(std::vector<Request*>&)> drain_;
    std::mutex mutex_;
    std::vector<Request*> gathered_;
    std::vector<Request*> taken_;
};

}  // namespace lockstep::counter
