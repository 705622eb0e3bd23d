// Threads for verbs that block: making, connecting and destroying queue pairs.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <utility>

namespace lockstep::transport::rdma {

class Workers {
 public:
    // The jobs of one strand run one after the other, in the order posted.
    using Strand = boost::asio::strand<boost::asio::thread_pool::executor_type>;

    // As many threads as strands that must not wait for one another.
    explicit Workers(std::size_t threads) : pool_(threads) {}

    Strand strand() { return boost::asio::make_strand(pool_); }
    // Waits for all jobs; none may be posted any more.
    void end() { pool_.join(); }

 private:
    boost::asio::thread_pool pool_;
};

template <class Job>
void post(const Workers::Strand& strand, Job&& job) {
    boost::asio::post(strand, std::forward<Job>(job));
}

}  // namespace lockstep::transport::rdma
