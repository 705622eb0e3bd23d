#include "consensus/replica/request_queue.h"

#include <cstring>
#include <utility>

namespace lockstep::replica {

bool RequestQueue::has_room(std::size_t more_bytes) const {
    return incoming_.proposals.size() + incoming_.reads.size() < max_requests_ &&
           incoming_.bytes.size() + more_bytes <= max_bytes_;
}

RequestQueue::Pushed RequestQueue::push_proposal(BytesView command, Replica::Done& done) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Pushed::closed;
    // One command always fits an empty queue, whatever the bound on bytes says.
    if (!has_room(command.size()) && !incoming_.proposals.empty()) return Pushed::full;
    const std::size_t offset = incoming_.bytes.size();
    incoming_.bytes.resize(offset + command.size(), boost::container::default_init);
    if (!command.empty()) std::memcpy(incoming_.bytes.data() + offset, command.data(), command.size());
    incoming_.proposals.emplace_back(offset, command.size(), std::move(done));
    return Pushed::taken;
}

RequestQueue::Pushed RequestQueue::push_read(Replica::Done& done) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Pushed::closed;
    if (!has_room(0)) return Pushed::full;
    incoming_.reads.push_back(std::move(done));
    return Pushed::taken;
}

std::size_t RequestQueue::waiting() {
    const std::lock_guard lock(mutex_);
    return incoming_.proposals.size() + incoming_.reads.size() + (fetched_.proposals.size() - next_proposal_) +
           (fetched_.reads.size() - next_read_);
}

void RequestQueue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

void RequestQueue::fetch() {
    const std::lock_guard lock(mutex_);
    if (!has_proposal()) {
        fetched_.bytes.clear();
        fetched_.proposals.clear();
        next_proposal_ = 0;
        std::swap(incoming_.bytes, fetched_.bytes);
        std::swap(incoming_.proposals, fetched_.proposals);
    }
    if (!has_read()) {
        fetched_.reads.clear();
        next_read_ = 0;
        std::swap(incoming_.reads, fetched_.reads);
    }
}

}  // namespace lockstep::replica
