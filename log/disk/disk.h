// What the log asks of a disk: one folder of files, written by operations that are data.
//
// The state machine that decides what is to be written (log/wal/wal.h) touches no file: it names operations, and takes
// their outcome. A thread performs them on a real disk (log/disk/posix_disk.h); the simulator performs them one by one
// in virtual time on a simulated one (log/disk/sim_disk.h).
#pragma once

#include "log/check.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::log {

// The name of a file in the folder; holds its text, so that an operation owns all it names but the data.
class FileName {
 public:
    static constexpr std::size_t kMaxBytes = 47;

    FileName() = default;
    explicit FileName(std::string_view text) {
        LOCKSTEP_CHECK_OP(text.size(), <=, kMaxBytes);
        text.copy(text_.data(), text.size());
    }
    const char* c_str() const { return text_.data(); }  // ends with 0
    std::string_view view() const { return text_.data(); }
    friend bool operator==(const FileName&, const FileName&) = default;

 private:
    std::array<char, kMaxBytes + 1> text_{};
};

// Names an open file; chosen by who opens it, below kMaxOpenFiles.
using FileHandle = std::uint8_t;
inline constexpr FileHandle kMaxOpenFiles = 8;

struct DiskOperation {
    enum class Kind : std::uint8_t {
        create,       // `name` with `bytes` allocated bytes, as `file`; an old one of that name is emptied first
        open,         // `name`, which exists, as `file`
        write,        // `data` at `offset`: all of it, or an error
        sync,         // what was written to `file` is durable (fdatasync)
        rename,       // `name` to `to`, which is replaced if it exists
        remove,       // `name`, which exists
        sync_folder,  // what was created, renamed and removed is durable
        close,        // `file`; of one that is not open: nothing
    };
    Kind kind = Kind::close;
    FileHandle file = 0;
    FileName name{};
    FileName to{};
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    BytesView data{};  // belongs to who named the operation until its outcome is known

    static DiskOperation create(FileHandle file, FileName name, std::uint64_t bytes);
    static DiskOperation open(FileHandle file, FileName name);
    static DiskOperation write(FileHandle file, std::uint64_t offset, BytesView data);
    static DiskOperation sync(FileHandle file);
    static DiskOperation rename(FileName name, FileName to);
    static DiskOperation remove(FileName name);
    static DiskOperation sync_folder();
    static DiskOperation close(FileHandle file);
};

// Names an operation for a person: "write of 128 bytes at 4096".
std::string to_string(const DiskOperation& operation);

struct FileInfo {
    FileName name;
    std::uint64_t bytes = 0;
};

// A folder of files on a disk. One thread at a time. Every call blocks until the disk has answered. Errors name the
// file, the system's reason, and what can be done. A file whose sync failed holds nobody knows what from then on: the
// caller gives up (S13); no implementation tries again by itself.
class Disk {
 public:
    Disk() = default;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;
    virtual ~Disk() = default;

    virtual Result<void> perform(const DiskOperation& operation) = 0;

    // Fills `into` from `offset` on; returns how many bytes there were, fewer only at the file's end.
    virtual Result<std::uint64_t> read(FileHandle file, std::uint64_t offset, std::span<std::byte> into) = 0;
    // Says that this range will be read soon. A hint: costs nothing where it means nothing.
    virtual void will_read(FileHandle, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
    // The folder's files, by name. Those whose names are longer than a FileName are none of the log's.
    virtual Result<std::vector<FileInfo>> list() = 0;
};

// Performs them in order, up to the first that fails.
Result<void> perform_all(Disk& disk, std::span<const DiskOperation> operations);

}  // namespace lockstep::log
