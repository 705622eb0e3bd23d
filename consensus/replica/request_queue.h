// Where users' threads leave proposals and reads for the protocol thread: bounded, and a full queue says so.
#pragma once

#include <lockstep/replica.h>
#include <lockstep/types.h>

#include <boost/container/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lockstep::replica {

// A command's bytes are copied in by the user's thread and out, into the ring, by the protocol thread: no allocation
// per command once the buffers have grown, one short lock per call on either side.
//
// Threads: `push_*` and `close` from any thread; everything else from the protocol thread.
class RequestQueue {
 public:
    struct Proposal {
        std::size_t offset = 0;
        std::size_t bytes = 0;
        Replica::Done done;
    };

    RequestQueue(std::size_t max_requests, std::size_t max_bytes)
        : max_requests_(max_requests), max_bytes_(max_bytes) {}

    // What became of a push; unless `taken`, `done` was left untouched.
    enum class Pushed { taken, full, closed };
    Pushed push_proposal(BytesView command, Replica::Done& done);
    Pushed push_read(Replica::Done& done);
    // How many requests `push_*` takes before `fetch` is called.
    std::size_t max_requests() const { return max_requests_; }
    // Requests that were pushed and not yet taken.
    std::size_t waiting();
    // From now on every push says `closed`.
    void close();

    // Fetches the proposals that were pushed, once all that were fetched before are taken; reads likewise.
    void fetch();
    bool has_proposal() const { return next_proposal_ < fetched_.proposals.size(); }
    // The oldest fetched one; its bytes stay valid until it is popped and `fetch` is called.
    const Proposal& proposal() const { return fetched_.proposals[next_proposal_]; }
    BytesView command() const { return {fetched_.bytes.data() + proposal().offset, proposal().bytes}; }
    // What is popped stays where it is until the next `fetch` and is the caller's to take or to call.
    Replica::Done& pop_proposal() { return fetched_.proposals[next_proposal_++].done; }
    bool has_read() const { return next_read_ < fetched_.reads.size(); }
    Replica::Done& pop_read() { return fetched_.reads[next_read_++]; }

 private:
    struct Batch {
        boost::container::vector<std::byte> bytes;  // grows without being zeroed first
        std::vector<Proposal> proposals;
        std::vector<Replica::Done> reads;
    };
    bool has_room(std::size_t more_bytes) const;

    const std::size_t max_requests_;
    const std::size_t max_bytes_;

    std::mutex mutex_;
    Batch incoming_;       // under the mutex
    bool closed_ = false;  // under the mutex

    Batch fetched_;
    std::size_t next_proposal_ = 0;
    std::size_t next_read_ = 0;
};

}  // namespace lockstep::replica
