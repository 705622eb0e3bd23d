// Other processes of a measurement, and what is left on disk: all of it ends with the objects here.
#pragma once

#include <lockstep/result.h>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::bench {

// From now on SIGINT and SIGTERM only make `interrupted` true, so that what runs ends in order. Before any thread.
void catch_interrupts();
bool interrupted();

// An error if the user has had enough, or the time is over.
Result<void> go_on(std::uint64_t deadline_ns, const std::string& what);

// A file descriptor that is closed with this.
class Descriptor {
 public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { reset(); }
    int number() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    void reset();

 private:
    int number_;
};

// A process that is killed when this ends, or when the thread that started it does.
class Child {
 public:
    // Runs `words[0]` (looked for in PATH) with the arguments behind it; it inherits the descriptors `inherited`,
    // by the same numbers, and the standard ones. Interrupts from the terminal pass it by. Main thread only.
    static Result<Child> start(const std::vector<std::string>& words, const std::vector<int>& inherited = {});
    // This program again, with other arguments; as verbose as this one.
    static Result<Child> again(std::vector<std::string> arguments, const std::vector<int>& inherited = {});

    Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}
    Child& operator=(Child&& other) noexcept {
        std::swap(pid_, other.pid_);
        std::swap(status_, other.status_);
        return *this;
    }
    ~Child() { kill(); }

    // SIGKILL, without waiting.
    void strike() const;
    // SIGKILL, and waits until it is gone.
    void kill();
    // Waits until it ends by itself; an error if it fails, or does not end in time.
    Result<void> finish(std::uint64_t deadline_ns, const std::string& name);
    // An error if it has ended.
    Result<void> check_running(const std::string& name);

 private:
    explicit Child(pid_t pid) : pid_(pid) {}
    bool ended(bool wait);
    pid_t pid_;
    int status_ = 0;
};

// A folder for temporary files that goes with this.
class TemporaryFolder {
 public:
    // In `parent`; empty: where the system has temporary files.
    static Result<TemporaryFolder> make(const std::string& parent = {});
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ~TemporaryFolder();
    const std::string& path() const { return path_; }

 private:
    explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// Ports of 127.0.0.1 that nobody else is given while this lives.
class Ports {
 public:
    static Result<Ports> reserve(std::size_t count);
    const std::vector<std::uint16_t>& numbers() const { return numbers_; }

 private:
    std::vector<Descriptor> holders_;
    std::vector<std::uint16_t> numbers_;
};

}  // namespace lockstep::bench
