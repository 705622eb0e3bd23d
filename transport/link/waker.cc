#include "transport/link/waker.h"

#include <cerrno>
#include <cstring>

#include <sys/eventfd.h>
#include <unistd.h>

namespace lockstep::transport::link {

Result<std::unique_ptr<Waker>> Waker::make() {
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0) return Error("cannot make an eventfd: " + std::string(std::strerror(errno)));
    return std::unique_ptr<Waker>(new Waker(descriptor));
}

Waker::~Waker() { close(descriptor_); }

void Waker::signal() {
    const std::uint64_t one = 1;
    // It cannot fail but when the counter is full, and then the sleeper wakes anyway.
    [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

}  // namespace lockstep::transport::link
