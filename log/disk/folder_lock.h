// Keeps a data folder to one process, and to the place where it was made: a copy of it, or one brought back from a
// backup, knows promises and entries that its owner has gone beyond, and would break them (S1, S12).
#pragma once

#include <lockstep/result.h>

#include <string>

namespace lockstep::log {

// Holds the folder for as long as it lives. The file `lock` in the folder says where the folder was made: the machine's
// id and the file's own inode number, which a copy does not have.
class FolderLock {
 public:
    // Blocks for the disk. Errors: another process has it; the folder is a copy, or was moved to another machine.
    static Result<FolderLock> take(const std::string& folder, const std::string& machine = machine_id());
    // An operator's word that the folder is the only one of its kind left, and that it is here now.
    static Result<FolderLock> adopt(const std::string& folder, const std::string& machine = machine_id());
    // What the system calls this machine; empty where it says nothing.
    static std::string machine_id();

    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&&) = delete;
    ~FolderLock();

 private:
    explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
    static Result<FolderLock> take(const std::string& folder, const std::string& machine, bool adopt);

    int descriptor_;
};

}  // namespace lockstep::log
