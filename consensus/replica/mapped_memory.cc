#include "consensus/replica/mapped_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace lockstep::replica {

Result<MappedMemory> MappedMemory::map(std::uint64_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return Error("cannot map " + std::to_string(bytes) + " bytes of memory: " + std::strerror(errno));
    return MappedMemory(static_cast<std::byte*>(memory), bytes);
}

// Where the system cannot, the pages come one by one, as they do without.
void MappedMemory::populate() { static_cast<void>(::madvise(memory_, bytes_, MADV_POPULATE_WRITE)); }

MappedMemory::~MappedMemory() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace lockstep::replica
