#include "tools/bench/process.h"

#include "tools/bench/clock.h"

#include <spdlog/spdlog.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

namespace lockstep::bench {
namespace {

std::atomic<bool> interrupt_came{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

Error system_error(const std::string& what) { return Error("cannot " + what + ": " + std::strerror(errno)); }

// In the child, between fork and exec: only what is safe in a signal handler. Does not return.
[[noreturn]] void become(char* const* words, const std::vector<int>& inherited, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before that took effect
    signal(SIGINT, SIG_IGN);
    for (const int descriptor : inherited) fcntl(descriptor, F_SETFD, 0);
    execvp(words[0], words);
    _exit(127);
}

}  // namespace

void catch_interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_came.store(true, std::memory_order_relaxed); };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return interrupt_came.load(std::memory_order_relaxed); }

Result<void> go_on(std::uint64_t deadline_ns, const std::string& what) {
    if (interrupted()) return Error("interrupted");
    if (now_ns() >= deadline_ns) return Error(what + " took too long");
    return {};
}

void Descriptor::reset() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Result<Child> Child::start(const std::vector<std::string>& words, const std::vector<int>& inherited) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));  // exec does not write
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return system_error("start a process");
    if (pid == 0) become(arguments.data(), inherited, parent);
    return Child(pid);
}

Result<Child> Child::again(std::vector<std::string> arguments, const std::vector<int>& inherited) {
    if (spdlog::should_log(spdlog::level::debug)) arguments.insert(arguments.begin(), "--verbose");
    arguments.insert(arguments.begin(), "/proc/self/exe");
    return start(arguments, inherited);
}

void Child::strike() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void Child::kill() {
    strike();
    ended(true);
}

bool Child::ended(bool wait) {
    if (pid_ <= 0) return true;
    pid_t found = 0;
    do {
        found = waitpid(pid_, &status_, wait ? 0 : WNOHANG);
    } while (found < 0 && errno == EINTR);
    if (found == 0) return false;
    pid_ = 0;
    return true;
}

Result<void> Child::finish(std::uint64_t deadline_ns, const std::string& name) {
    while (!ended(false)) {
        if (auto going = go_on(deadline_ns, name); !going) return going;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return {};
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 127) return Error(name + " cannot be run: is it installed?");
    return Error(name + " failed, with status " + std::to_string(status_));
}

Result<void> Child::check_running(const std::string& name) {
    if (!ended(false)) return {};
    return Error(name + " has ended, with status " + std::to_string(status_));
}

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent) {
    std::error_code error;
    const auto where = parent.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(parent);
    std::string path = (where / "lockstep-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return system_error("make the folder " + path);
    return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

// Bound with SO_REUSEADDR and not listening, a port can be bound once more by whoever names it, as a replica does, and
// is given to nobody who asks for any.
Result<Ports> Ports::reserve(std::size_t count) {
    Ports ports;
    for (std::size_t i = 0; i < count; ++i) {
        Descriptor holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int yes = 1;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        if (holder.number() < 0 || setsockopt(holder.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
            bind(holder.number(), any, size) != 0 || getsockname(holder.number(), any, &size) != 0)
            return system_error("reserve a port");
        ports.numbers_.push_back(ntohs(address.sin_port));
        ports.holders_.push_back(std::move(holder));
    }
    return ports;
}

}  // namespace lockstep::bench
