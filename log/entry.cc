#include "log/entry.h"

#include "log/hash.h"

namespace lockstep::log {

std::uint64_t payload_hash(BytesView payload, std::uint64_t genesis) { return hash_payload(payload, genesis); }

std::uint64_t entry_checksum(const EntryHeader& header, std::uint64_t hash_of_payload, std::uint64_t seed) {
    return chain_checksum(header, hash_of_payload, seed);
}

}  // namespace lockstep::log
