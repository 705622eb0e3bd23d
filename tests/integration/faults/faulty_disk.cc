// Stands between a program and its files, for tests: loaded by LD_PRELOAD, it writes down what is not yet durable of
// what the program does in the folder that LOCKSTEP_FAULTS_DATA names, so that power_loss.cc can take it back after a
// kill; and lets calls fail or hang as a test says meanwhile. journal.h has both in detail.
#include "tests/integration/faults/journal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::faults {
namespace {

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The system's own calls.
struct Real {
    int (*openat)(int, const char*, int, ...) = next<int(int, const char*, int, ...)>("openat");
    ssize_t (*write)(int, const void*, size_t) = next<ssize_t(int, const void*, size_t)>("write");
    ssize_t (*pwrite)(int, const void*, size_t, off_t) = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
    int (*fdatasync)(int) = next<int(int)>("fdatasync");
    int (*fsync)(int) = next<int(int)>("fsync");
    int (*allocate)(int, off_t, off_t) = next<int(int, off_t, off_t)>("posix_fallocate");
    int (*renameat)(int, const char*, int, const char*) =
        next<int(int, const char*, int, const char*)>("renameat");
    int (*unlinkat)(int, const char*, int) = next<int(int, const char*, int)>("unlinkat");
    int (*close)(int) = next<int(int)>("close");
};

const Real& real() {
    static const Real calls;
    return calls;
}

std::string path_of(int descriptor) {
    std::array<char, 4096> text{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = readlink(link.c_str(), text.data(), text.size());
    return length < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
}

std::string path_at(int folder, const char* name) {
    if (name[0] == '/') return name;
    if (folder != AT_FDCWD) return path_of(folder) + "/" + name;
    std::array<char, 4096> here{};
    return getcwd(here.data(), here.size()) == nullptr ? std::string(name) : std::string(here.data()) + "/" + name;
}

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class Faults {
 public:
    static Faults& get() {
        static Faults faults;
        return faults;
    }

    bool on() const { return journal_ >= 0; }
    bool covers(std::string_view path) const {
        return on() && path.starts_with(data_) && (path.size() == data_.size() || path[data_.size()] == '/');
    }
    std::string kept(std::uint64_t place) const { return side_ + "/kept-" + std::to_string(place); }

    // Appends a record. Returns its place.
    std::uint64_t note(Record record, std::string_view behind) {
        const std::lock_guard lock(mutex_);
        record.bytes = behind.size();
        std::string text(reinterpret_cast<const char*>(&record), sizeof record);
        text += behind;
        const auto place = static_cast<std::uint64_t>(lseek(journal_, 0, SEEK_END));
        if (real().write(journal_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
        return place;
    }
    std::uint64_t end() {
        const std::lock_guard lock(mutex_);
        return static_cast<std::uint64_t>(lseek(journal_, 0, SEEK_END));
    }

    // Waits where the call is to hang. The error that it is to fail with; 0: none.
    int before(std::string_view call, std::string_view name, std::uint64_t bytes = 0) {
        for (;;) {
            std::istringstream line(control());
            std::string what, first, pattern;
            line >> what >> first >> pattern;
            if (what.empty() || name.find(pattern) == std::string_view::npos) return 0;
            if (what == "full") return full(std::strtoull(first.c_str(), nullptr, 10), bytes);
            if (first != call) return 0;
            if (what == "eio") return real().unlinkat(AT_FDCWD, control_.c_str(), 0) == 0 ? EIO : 0;
            const timespec pause{0, 2'000'000};
            nanosleep(&pause, nullptr);
        }
    }

 private:
    Faults() {
        const char* const side = std::getenv("LOCKSTEP_FAULTS");
        const char* const data = std::getenv("LOCKSTEP_FAULTS_DATA");
        if (side == nullptr || data == nullptr) return;
        side_ = side;
        data_ = data;
        control_ = side_ + "/" + kControlName;
        journal_ = real().openat(AT_FDCWD, (side_ + "/" + kJournalName).c_str(),
                                 O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (journal_ < 0) abort();
    }

    std::string control() const {
        const int file = real().openat(AT_FDCWD, control_.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) return {};
        std::array<char, 256> text{};
        const ssize_t length = read(file, text.data(), text.size());
        real().close(file);
        return length < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(length));
    }

    int full(std::uint64_t most, std::uint64_t bytes) {
        if (bytes == 0) return 0;
        return taken_.fetch_add(bytes) + bytes > most ? ENOSPC : 0;
    }

    std::string side_;
    std::string data_;
    std::string control_;
    int journal_ = -1;
    std::mutex mutex_;
    std::atomic<std::uint64_t> taken_ = 0;
};

// Whether a file is in the folder, and which one it is.
struct File {
    bool covered = false;
    bool folder = false;
    std::uint64_t number = 0;
    std::string path;
};

File file_of(int descriptor) {
    File file;
    if (!Faults::get().on()) return file;
    struct stat about{};
    if (fstat(descriptor, &about) != 0 || (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))) return file;
    file.path = path_of(descriptor);
    file.folder = S_ISDIR(about.st_mode);
    file.number = about.st_ino;
    file.covered = Faults::get().covers(file.path);
    return file;
}

int fails(int error) {
    errno = error;
    return -1;
}

ssize_t write_at(int descriptor, const void* data, std::size_t bytes, off_t offset, bool at_end) {
    const auto do_it = [&](std::size_t count) {
        return at_end ? real().write(descriptor, data, count) : real().pwrite(descriptor, data, count, offset);
    };
    const File file = file_of(descriptor);
    if (!file.covered) return do_it(bytes);
    const int error = Faults::get().before("write", name_in(file.path), bytes);
    if (error == ENOSPC) return fails(error);
    const std::size_t count = error == 0 ? bytes : bytes / 2;
    if (at_end) offset = lseek(descriptor, 0, SEEK_CUR);
    // What stands there; zeros behind the file's end.
    std::string before(count, '\0');
    const int reads = open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDONLY | O_CLOEXEC);
    if (reads < 0 || pread(reads, before.data(), before.size(), offset) < 0) abort();
    real().close(reads);
    Faults::get().note({Record::Kind::write, file.number, static_cast<std::uint64_t>(offset), 0}, before);
    const ssize_t done = do_it(count);
    return error == 0 ? done : fails(error);
}

int synchronize(int descriptor, int (*do_it)(int)) {
    const File file = file_of(descriptor);
    if (!file.covered) return do_it(descriptor);
    const std::uint64_t below = Faults::get().end();
    if (const int error = Faults::get().before(file.folder ? "sync-folder" : "sync", name_in(file.path)); error != 0) {
        if (!file.folder) Faults::get().note({Record::Kind::sync_failed, file.number, below, 0}, {});
        return fails(error);
    }
    const int done = do_it(descriptor);
    if (done == 0)
        Faults::get().note({file.folder ? Record::Kind::synced_folder : Record::Kind::sync, file.number, below, 0},
                           file.folder ? std::string_view(file.path) : std::string_view());
    return done;
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
    const std::string path = Faults::get().on() && (flags & O_CREAT) != 0 ? path_at(folder, name) : std::string();
    const bool covered = !path.empty() && Faults::get().covers(path);
    struct stat about{};
    const bool there = covered && stat(path.c_str(), &about) == 0;
    if (covered)
        if (const int error = Faults::get().before("create", name_in(path)); error != 0) return fails(error);
    const int descriptor = real().openat(folder, name, flags, mode);
    if (descriptor >= 0 && covered && !there) Faults::get().note({Record::Kind::created, 0, 0, 0}, path);
    return descriptor;
}

int rename_at(int from_folder, const char* from, int to_folder, const char* to) {
    if (!Faults::get().on()) return real().renameat(from_folder, from, to_folder, to);
    const std::string path = path_at(from_folder, from);
    const std::string new_path = path_at(to_folder, to);
    if (!Faults::get().covers(path)) return real().renameat(from_folder, from, to_folder, to);
    if (const int error = Faults::get().before("rename", name_in(path)); error != 0) return fails(error);
    const std::uint64_t place =
        Faults::get().note({Record::Kind::renamed, 0, 0, 0}, path + '\0' + new_path);
    // Fails where there was nothing.
    static_cast<void>(link(new_path.c_str(), Faults::get().kept(place).c_str()));
    return real().renameat(from_folder, from, to_folder, to);
}

int unlink_at(int folder, const char* name, int flags) {
    const std::string path = Faults::get().on() ? path_at(folder, name) : std::string();
    if (path.empty() || !Faults::get().covers(path) || (flags & AT_REMOVEDIR) != 0)
        return real().unlinkat(folder, name, flags);
    if (const int error = Faults::get().before("remove", name_in(path)); error != 0) return fails(error);
    const std::uint64_t place = Faults::get().note({Record::Kind::removed, 0, 0, 0}, path);
    if (link(path.c_str(), Faults::get().kept(place).c_str()) != 0) abort();
    return real().unlinkat(folder, name, flags);
}

int allocate(int descriptor, off_t offset, off_t bytes) {
    const File file = file_of(descriptor);
    if (file.covered) {
        const int error = Faults::get().before("allocate", name_in(file.path), static_cast<std::uint64_t>(bytes));
        if (error != 0) return error;
    }
    return real().allocate(descriptor, offset, bytes);
}

mode_t mode_behind(int flags, va_list words) { return (flags & O_CREAT) != 0 ? va_arg(words, mode_t) : 0; }

}  // namespace
}  // namespace lockstep::faults

namespace faults = lockstep::faults;

#define LOCKSTEP_OPENED(folder)                                         \
    va_list words;                                                      \
    va_start(words, flags);                                             \
    const mode_t mode = faults::mode_behind(flags, words);              \
    va_end(words);                                                      \
    return faults::open_at(folder, name, flags, mode)

extern "C" {

int open(const char* name, int flags, ...) { LOCKSTEP_OPENED(AT_FDCWD); }
int open64(const char* name, int flags, ...) { LOCKSTEP_OPENED(AT_FDCWD); }
int openat(int folder, const char* name, int flags, ...) { LOCKSTEP_OPENED(folder); }
int openat64(int folder, const char* name, int flags, ...) { LOCKSTEP_OPENED(folder); }
ssize_t write(int descriptor, const void* data, size_t bytes) {
    return faults::write_at(descriptor, data, bytes, 0, true);
}
ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
    return faults::write_at(descriptor, data, bytes, offset, false);
}
ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
    return faults::write_at(descriptor, data, bytes, offset, false);
}
int fdatasync(int descriptor) { return faults::synchronize(descriptor, faults::real().fdatasync); }
int fsync(int descriptor) { return faults::synchronize(descriptor, faults::real().fsync); }
int posix_fallocate(int descriptor, off_t offset, off_t bytes) { return faults::allocate(descriptor, offset, bytes); }
int posix_fallocate64(int descriptor, off64_t offset, off64_t bytes) {
    return faults::allocate(descriptor, offset, bytes);
}
int rename(const char* from, const char* to) noexcept { return faults::rename_at(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
    return faults::rename_at(from_folder, from, to_folder, to);
}
int unlink(const char* name) noexcept { return faults::unlink_at(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char* name, int flags) noexcept { return faults::unlink_at(folder, name, flags); }
// What the kernel does by itself is not seen here: a program is to do without.
struct io_uring;
int io_uring_queue_init(unsigned, io_uring*, unsigned) { return -ENOSYS; }

}  // extern "C"
