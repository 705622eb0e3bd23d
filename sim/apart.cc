#include "sim/apart.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

namespace lockstep::sim {

namespace {

// What comes through the pipe: a mark and the numbers of a RunResult, then its text; from a crash, what it said.
constexpr std::uint64_t kMark = 0x6c6f636b73746570;

struct Numbers {
    std::uint64_t mark = kMark;
    std::uint64_t values[12] = {};
};
static_assert(std::is_trivially_copyable_v<Numbers>);

auto numbers_of(auto& result) {
    return std::array{&result.actions,   &result.hash,      &result.acknowledged, &result.unknown,
                      &result.reads,     &result.elections, &result.committed,    &result.undecided,
                      &result.virtual_ns, &result.to_leader_ns, &result.to_commit_ns};
}

void write_all(int to, const void* from, std::size_t bytes) {
    const char* at = static_cast<const char*>(from);
    while (bytes > 0) {
        const ssize_t written = write(to, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _Exit(3);
        at += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

[[noreturn]] void child(const Case& of, int results, const std::string& trace) {
    dup2(results, STDERR_FILENO);  // a failed check says there what it expected
    std::FILE* file = trace.empty() ? nullptr : std::fopen(trace.c_str(), "w");
    const auto tell = [file](const std::string& line) {
        std::fprintf(file, "%s\n", line.c_str());
        std::fflush(file);  // a crash is to leave it whole
    };
    const RunResult result = file == nullptr ? run(of) : run(of, tell);
    Numbers numbers;
    numbers.values[0] = static_cast<std::uint64_t>(result.failure);
    std::size_t next = 1;
    for (const std::uint64_t* number : numbers_of(result)) numbers.values[next++] = *number;
    write_all(results, &numbers, sizeof numbers);
    write_all(results, result.what.data(), result.what.size());
    _Exit(0);
}

}  // namespace

Apart::Apart(const Case& of, const std::string& trace) : started_(std::chrono::steady_clock::now()) {
    int ends[2];
    if (pipe(ends) != 0) {
        cannot_ = std::string("cannot make a pipe: ") + std::strerror(errno);
        return;
    }
    std::fflush(nullptr);
    child_ = fork();
    if (child_ == 0) {
        close(ends[0]);
        child(of, ends[1], trace);
    }
    if (child_ < 0) cannot_ = std::string("cannot start a process: ") + std::strerror(errno);
    close(ends[1]);
    results_ = ends[0];
}

Apart& Apart::operator=(Apart&& other) noexcept {
    std::swap(child_, other.child_);
    std::swap(results_, other.results_);
    std::swap(taken_, other.taken_);
    std::swap(status_, other.status_);
    std::swap(gave_up_, other.gave_up_);
    std::swap(cannot_, other.cannot_);
    std::swap(started_, other.started_);
    return *this;
}

Apart::~Apart() {
    if (child_ > 0) {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    if (results_ >= 0) close(results_);
}

bool Apart::take() {
    if (child_ <= 0) return true;
    std::array<char, 65536> buffer;
    const ssize_t got = read(results_, buffer.data(), buffer.size());
    if (got > 0) taken_.append(buffer.data(), static_cast<std::size_t>(got));
    if (got > 0 || (got < 0 && errno == EINTR)) return false;
    while (waitpid(child_, &status_, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return true;
}

void Apart::give_up() {
    if (child_ <= 0) return;
    gave_up_ = true;
    kill(child_, SIGKILL);
    while (!take()) {
    }
}

RunResult Apart::result() const {
    RunResult result;
    Numbers numbers;
    if (gave_up_) {
        result.failure = Failure::no_progress;
        result.what = "the run does not end";
    } else if (!cannot_.empty()) {
        result.failure = Failure::crash;
        result.what = cannot_;
    } else if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0 && taken_.size() >= sizeof numbers) {
        std::memcpy(&numbers, taken_.data(), sizeof numbers);
        if (numbers.mark == kMark) {
            result.failure = static_cast<Failure>(numbers.values[0]);
            std::size_t next = 1;
            for (std::uint64_t* number : numbers_of(result)) *number = numbers.values[next++];
            result.what = taken_.substr(sizeof numbers);
            return result;
        }
        result.failure = Failure::crash;
        result.what = taken_;
    } else {
        result.failure = Failure::crash;
        result.what = taken_.empty() && WIFSIGNALED(status_) ? strsignal(WTERMSIG(status_)) : taken_;
    }
    return result;
}

RunResult run_apart(const Case& of, std::chrono::seconds limit, const std::string& trace) {
    Apart apart(of, trace);
    const auto end = apart.started() + limit;
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd waits{apart.descriptor(), POLLIN, 0};
        if (left.count() <= 0) {
            apart.give_up();
            return apart.result();
        }
        if (apart.descriptor() >= 0) poll(&waits, 1, static_cast<int>(left.count()));
        if ((apart.descriptor() < 0 || waits.revents != 0) && apart.take()) return apart.result();
    }
}

}  // namespace lockstep::sim
