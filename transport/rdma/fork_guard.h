// A child process must not keep a device open: as long as its descriptors live anywhere, the device's queue pairs do,
// and a replica that has died would go on to be written to and to answer.
#pragma once

#include <vector>

namespace lockstep::transport::rdma {

// While this lives, a fork closes these descriptors in the child. Any thread.
class ForkGuard {
 public:
    explicit ForkGuard(std::vector<int> descriptors);
    ~ForkGuard();
    ForkGuard(const ForkGuard&) = delete;
    ForkGuard& operator=(const ForkGuard&) = delete;

 private:
    std::vector<int> descriptors_;
};

}  // namespace lockstep::transport::rdma
