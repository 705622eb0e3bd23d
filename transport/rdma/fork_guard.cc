#include "transport/rdma/fork_guard.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace lockstep::transport::rdma {
namespace {

// What a fork handler needs can only be found through a global. The lock is held over the fork, so the child sees a
// whole list.
std::mutex& lock_of_all() {
    static std::mutex lock;
    return lock;
}

std::vector<int>& all() {
    static std::vector<int> descriptors;
    return descriptors;
}

void before_fork() { lock_of_all().lock(); }
void after_fork_in_parent() { lock_of_all().unlock(); }
void after_fork_in_child() {
    for (const int descriptor : all()) ::close(descriptor);
    all().clear();
    lock_of_all().unlock();
}

}  // namespace

ForkGuard::ForkGuard(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {
    static std::once_flag installed;
    std::call_once(installed, [] { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
    const std::lock_guard lock(lock_of_all());
    all().insert(all().end(), descriptors_.begin(), descriptors_.end());
}

ForkGuard::~ForkGuard() {
    const std::lock_guard lock(lock_of_all());
    for (const int descriptor : descriptors_)
        if (const auto at = std::find(all().begin(), all().end(), descriptor); at != all().end()) all().erase(at);
}

}  // namespace lockstep::transport::rdma
