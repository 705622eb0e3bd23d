#include "consensus/replica/config_bytes.h"

#include "log/snapshot/snapshot.h"

#include <cstring>

namespace lockstep::replica {

namespace {

// Two counts, then nine bytes for each voter.
constexpr std::size_t kVoterBytes = 1 + sizeof(std::uint64_t);
static_assert(2 + 2 * kMaxReplicas * kVoterBytes <= log::SnapshotMeta::kMaxConfigBytes);

void put(const core::VoterSet& set, std::string& out) {
    for (const core::Voter& voter : set.all()) {
        out.push_back(static_cast<char>(voter.id.value));
        out.append(reinterpret_cast<const char*>(&voter.incarnation.value), sizeof voter.incarnation.value);
    }
}

// False where an id is 0 or comes twice.
bool take(std::string_view& bytes, std::size_t count, core::VoterSet& set) {
    for (; count > 0; --count, bytes.remove_prefix(kVoterBytes)) {
        core::Voter voter{ReplicaId{static_cast<std::uint8_t>(bytes[0])}, {}};
        std::memcpy(&voter.incarnation.value, bytes.data() + 1, sizeof voter.incarnation.value);
        if (!voter.id || !voter.incarnation || !set.add(voter)) return false;
    }
    return true;
}

}  // namespace

std::string bytes_of(const core::Config& config) {
    std::string out;
    out.push_back(static_cast<char>(config.voters.size()));
    out.push_back(static_cast<char>(config.next.size()));
    put(config.voters, out);
    put(config.next, out);
    return out;
}

Result<core::Config> config_of(std::string_view bytes) {
    if (bytes.size() < 2) return Error("a config of " + std::to_string(bytes.size()) + " bytes: it is cut short");
    const auto voters = static_cast<std::uint8_t>(bytes[0]);
    const auto next = static_cast<std::uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    if (voters == 0 || voters > kMaxReplicas || next > kMaxReplicas || bytes.size() != (voters + next) * kVoterBytes)
        return Error("a config of " + std::to_string(voters) + " and " + std::to_string(next) + " voters in " +
                     std::to_string(bytes.size()) + " bytes: 1 to " + std::to_string(kMaxReplicas) +
                     ", nine bytes each");
    core::Config config;
    if (!take(bytes, voters, config.voters) || !take(bytes, next, config.next))
        return Error("a config names a voter twice, or one without id or incarnation");
    return config;
}

}  // namespace lockstep::replica
