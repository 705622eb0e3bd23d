// XXH3 as the log uses it, inlined: the hash of a small payload costs less than a call into the shared library.
// Only log/*.cc include this.
#pragma once

#include "log/entry.h"
#include "log/planted.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep::log {

inline std::uint64_t hash_payload(BytesView payload, std::uint64_t genesis) {
    return XXH3_64bits_withSeed(payload.data(), payload.size(), genesis);
}

// entry_checksum, with the hashed bytes put together as words: no detour of the header through memory.
inline std::uint64_t chain_checksum(const EntryHeader& header, std::uint64_t hash_of_payload, std::uint64_t seed) {
    const std::uint64_t length_and_kind = header.length | std::uint64_t{static_cast<std::uint8_t>(header.kind)} << 32 |
                                          std::uint64_t{header.flags} << 40 | std::uint64_t{header.reserved} << 48;
    const std::uint64_t chained[] = {header.index,        header.ballot,   header.commit,
                                     header.timestamp_ns, length_and_kind, hash_of_payload};
    static_assert(sizeof chained == sizeof(EntryHeader) - sizeof header.checksum + sizeof hash_of_payload);
    return XXH3_64bits_withSeed(chained, sizeof chained, LOCKSTEP_PLANTED(chain_seed_ignored) ? 0 : seed);
}

}  // namespace lockstep::log
