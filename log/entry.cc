#include "log/entry.h"

#include <cstring>

// Inlined: the hash of a 64-byte payload costs less than a call through the shared library's dispatch.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep::log {

std::uint64_t payload_hash(BytesView payload) { return XXH3_64bits(payload.data(), payload.size()); }

std::uint64_t entry_checksum(const EntryHeader& header, std::uint64_t hash_of_payload, std::uint64_t seed) {
    constexpr std::size_t kHashedHeader = sizeof(EntryHeader) - sizeof(header.checksum);
    unsigned char chained[kHashedHeader + sizeof hash_of_payload];
    std::memcpy(chained, reinterpret_cast<const unsigned char*>(&header) + sizeof header.checksum, kHashedHeader);
    std::memcpy(chained + kHashedHeader, &hash_of_payload, sizeof hash_of_payload);
    return XXH3_64bits_withSeed(chained, sizeof chained, seed);
}

}  // namespace lockstep::log
