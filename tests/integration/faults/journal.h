// What faulty_disk.cc remembers of what a program did to its files, and power_loss.cc undoes: a file of records, each
// with bytes behind it. The journal's own bytes outlive a killed process, as all that the system was given does.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lockstep::faults {

struct Record {
    enum class Kind : std::uint64_t {
        write,     // to `file` at `offset`, `bytes`; behind it: what stood there before
        sync,      // of `file`: what the journal has of it below `offset` is durable
        sync_failed,  // what it should have made durable may be lost, whatever syncs come later
        created,   // behind it: the path
        renamed,   // behind it: the path, a 0, the new path; what that named before is kept as "kept-PLACE"
        removed,   // behind it: the path; what it named is kept as "kept-PLACE"
        synced_folder,  // behind it: the path; what was created, renamed and removed there below `offset` is durable
    };
    Kind kind = Kind::write;
    std::uint64_t file = 0;    // its inode number, under whatever name
    std::uint64_t offset = 0;  // PLACE is where a record stands in the journal
    std::uint64_t bytes = 0;   // that follow
};
static_assert(std::has_unique_object_representations_v<Record>);

// In the folder that LOCKSTEP_FAULTS names, beside what is kept.
inline constexpr const char* kJournalName = "journal";
// What is to go wrong from now on, one line that a test writes:
//   eio CALL NAME     the next CALL (write, sync, sync-folder, rename, remove, create) of a file whose name has NAME in
//                     it fails, once; of a write half is done. The line is gone then
//   hang CALL NAME    each waits for as long as the line is there
//   full BYTES NAME   they take so many bytes more, and no more while the line is there (ENOSPC)
inline constexpr const char* kControlName = "control";

}  // namespace lockstep::faults
