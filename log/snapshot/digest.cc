#include "log/snapshot/digest.h"

#include "log/hash.h"

namespace lockstep::log {

struct Digest::State {
    XXH3_state_t hash;
};

void Digest::Free::operator()(State* state) const { delete state; }

Digest::Digest() : state_(new State) { XXH3_64bits_reset(&state_->hash); }

void Digest::add(BytesView bytes) { XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size()); }

std::uint64_t Digest::value() const { return XXH3_64bits_digest(&state_->hash); }

}  // namespace lockstep::log
