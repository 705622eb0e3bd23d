#include "tests/unit/counter/redis_process.h"

#include "tests/unit/counter/test_client.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

namespace lockstep::counter {

std::unique_ptr<RedisProcess> RedisProcess::start(std::string& why) {
    char folder[] = "/tmp/counter-redis-XXXXXX";
    if (mkdtemp(folder) == nullptr) {
        why = "no temporary folder can be made";
        return nullptr;
    }
    const std::uint16_t port = free_port();
    const std::string port_text = std::to_string(port);
    std::vector<const char*> args = {
        "redis-server", "--port", port_text.c_str(), "--bind",  "127.0.0.1", "--save",    "",     "--appendonly", "no",
        "--dir",        folder,   "--loglevel",      "warning", "--logfile", "redis.log", nullptr};
    pid_t pid = 0;
    if (posix_spawnp(&pid, "redis-server", nullptr, nullptr, const_cast<char**>(args.data()), environ) != 0) {
        std::filesystem::remove_all(folder);
        why = "redis-server is not installed";
        return nullptr;
    }
    std::unique_ptr<RedisProcess> process(new RedisProcess(pid, port, folder));
    for (int attempt = 0; attempt < 1000; ++attempt) {
        if (port_answers(port)) return process;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    why = "redis-server does not answer within ten seconds";
    return nullptr;
}

RedisProcess::~RedisProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
}

}  // namespace lockstep::counter
