// A simulated disk: what a real one may do at a crash or at a fault, and no more. Deterministic: it draws from what it
// was given.
//
// What was not synced is, at a crash, lost or kept by sectors of 512 bytes, each one in any of the states that it was
// written in since it was last durable; what was created, renamed or removed and not synced is kept or undone, each
// change for itself. After a sync that failed, what it should have made durable is partly lost for good, and can still
// be read until the crash: as the page cache of a kernel does it.
#pragma once

#include "log/disk/disk.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::log {

class SimDisk final : public Disk {
 public:
    static constexpr std::uint64_t kSectorBytes = 512;

    // A number from 0 to bound - 1; bound is not 0.
    using Draw = std::function<std::uint64_t(std::uint64_t bound)>;
    explicit SimDisk(Draw draw) : draw_(std::move(draw)) {}

    Result<void> perform(const DiskOperation& operation) override;
    Result<std::uint64_t> read(FileHandle file, std::uint64_t offset, std::span<std::byte> into) override;
    Result<std::vector<FileInfo>> list() override;

    // -- Faults ------------------------------------------------------------------------------------------------------

    // Power is lost and comes back: what was not durable is decided, and no file is open. Planned faults are forgotten.
    void crash();
    // Power is lost in the middle of the operation that is `count` operations from now (0: the next): it and all behind
    // it fail, until `crash` is called.
    void crash_in(std::uint64_t count) { crash_in_ = count; }
    bool crashed() const { return crashed_; }
    // Whether a planned failure has come true, ever.
    bool failed() const { return failed_; }
    // The next operation of that kind fails, with nothing or part of it done.
    void fail_next(DiskOperation::Kind kind, std::string why = "Input/output error") { fail_[kind] = std::move(why); }
    // Nothing of what was planned fails any more.
    void forget_planned();
    // The next write goes to another place of the same file, and succeeds.
    void misdirect_next() { misdirect_ = true; }
    // One bit of a file at rest changes.
    void flip_bit(const FileName& name, std::uint64_t offset, unsigned bit);
    // All files together hold no more; creating one fails then (ENOSPC).
    void limit(std::uint64_t bytes) { limit_ = bytes; }
    // No operation completes while the disk hangs: who performs operations asks, and waits.
    void hang(bool hung) { hung_ = hung; }
    bool hung() const { return hung_; }

    std::uint64_t operations() const { return operations_; }
    std::uint64_t syncs() const { return syncs_; }
    // Bytes of a file as they are read now; empty if there is none of that name.
    std::vector<std::byte> contents(const FileName& name) const;
    // What a crash is sure to leave of it: without anything that was not synced.
    std::vector<std::byte> durable_contents(const FileName& name) const;
    // Puts a file there, durable at once.
    void put(const FileName& name, std::vector<std::byte> bytes);

 private:
    struct Sector {
        std::uint64_t number = 0;
        std::vector<std::byte> bytes;
    };
    struct File {
        std::vector<std::byte> view;     // what a read sees
        std::vector<std::byte> durable;  // what a crash leaves, without `pending`
        std::vector<Sector> pending;     // written, not yet durable, in order
    };
    using Folder = std::map<std::string, std::shared_ptr<File>, std::less<>>;
    struct Change {
        DiskOperation::Kind kind = DiskOperation::Kind::create;
        std::string name;
        std::string to;
        std::shared_ptr<File> file;
    };

    Result<void> perform_now(const DiskOperation& operation, bool part);
    Result<void> create(const DiskOperation& operation);
    Result<void> write(const DiskOperation& operation, bool part);
    Result<void> sync(const DiskOperation& operation, bool part);
    void apply(Folder& folder, const Change& change) const;
    void change(Change change);
    std::uint64_t bytes_held() const;
    Error error(const DiskOperation& operation, const std::string& why) const;

    Draw draw_;
    Folder folder_;   // what is seen
    Folder durable_;  // what a crash leaves, without `changes_`
    std::vector<Change> changes_;
    std::array<std::shared_ptr<File>, kMaxOpenFiles> open_{};
    std::map<DiskOperation::Kind, std::string> fail_;
    std::optional<std::uint64_t> crash_in_;
    std::uint64_t limit_ = ~std::uint64_t{0};
    std::uint64_t operations_ = 0;
    std::uint64_t syncs_ = 0;
    bool misdirect_ = false;
    bool crashed_ = false;
    bool failed_ = false;
    bool hung_ = false;
};

}  // namespace lockstep::log
