// Debian's redis-server, to compare with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::counter {

// A redis-server on a loopback port, without persistence; ended with this object.
class RedisProcess {
 public:
    // Null if redis-server is not installed or does not come up; `why` says which.
    static std::unique_ptr<RedisProcess> start(std::string& why);
    ~RedisProcess();
    RedisProcess(const RedisProcess&) = delete;
    RedisProcess& operator=(const RedisProcess&) = delete;
    std::uint16_t port() const { return port_; }

 private:
    RedisProcess(pid_t pid, std::uint16_t port, std::string folder)
        : pid_(pid), port_(port), folder_(std::move(folder)) {}
    const pid_t pid_;
    const std::uint16_t port_;
    const std::string folder_;
};

}  // namespace lockstep::counter
