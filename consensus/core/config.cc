#include "consensus/core/config.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>

namespace lockstep::core {

namespace {

constexpr std::size_t kVoterBytes = 1 + sizeof(std::uint64_t);

void put(const VoterSet& set, std::string& out) {
    for (const Voter& voter : set.all()) {
        out.push_back(static_cast<char>(voter.id.value));
        out.append(reinterpret_cast<const char*>(&voter.incarnation.value), sizeof voter.incarnation.value);
    }
}

// False where an id is 0 or comes twice.
bool take(std::string_view& bytes, std::size_t count, VoterSet& set) {
    for (; count > 0; --count, bytes.remove_prefix(kVoterBytes)) {
        Voter voter{ReplicaId{static_cast<std::uint8_t>(bytes[0])}, {}};
        std::memcpy(&voter.incarnation.value, bytes.data() + 1, sizeof voter.incarnation.value);
        if (!voter.id || !voter.incarnation || !set.add(voter)) return false;
    }
    return true;
}

}  // namespace

bool VoterSet::add(Voter voter) {
    const auto same_id = [&](const Voter& other) { return other.id == voter.id; };
    if (count_ == voters_.size() || std::ranges::any_of(all(), same_id)) return false;
    voters_[count_++] = voter;
    return true;
}

bool VoterSet::remove(ReplicaId id) {
    const auto found = std::ranges::find(all(), id, &Voter::id);
    if (found == all().end()) return false;
    const auto at = static_cast<std::size_t>(found - all().begin());
    std::copy(voters_.begin() + at + 1, voters_.begin() + count_, voters_.begin() + at);
    voters_[--count_] = {};
    return true;
}

std::optional<std::size_t> VoterSet::find(Voter voter) const {
    const auto found = std::ranges::find(all(), voter);
    if (found == all().end()) return std::nullopt;
    return static_cast<std::size_t>(found - all().begin());
}

bool VoterSet::has(Voter voter) const { return find(voter).has_value(); }

std::string bytes_of(const Config& config) {
    std::string out;
    out.push_back(static_cast<char>(config.voters.size()));
    out.push_back(static_cast<char>(config.next.size()));
    put(config.voters, out);
    put(config.next, out);
    return out;
}

Result<Config> config_of(std::string_view bytes) {
    if (bytes.size() < 2) return Error("a config of " + std::to_string(bytes.size()) + " bytes: it is cut short");
    const auto voters = static_cast<std::uint8_t>(bytes[0]);
    const auto next = static_cast<std::uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    if (voters == 0 || voters > kMaxReplicas || next > kMaxReplicas || bytes.size() != (voters + next) * kVoterBytes)
        return Error("a config of " + std::to_string(voters) + " and " + std::to_string(next) + " voters in " +
                     std::to_string(bytes.size()) + " bytes: 1 to " + std::to_string(kMaxReplicas) +
                     ", nine bytes each");
    Config config;
    if (!take(bytes, voters, config.voters) || !take(bytes, next, config.next))
        return Error("a config names a voter twice, or one without id or incarnation");
    return config;
}

ConfigAt config_in(BytesView payload, Index at) {
    auto config = config_of({reinterpret_cast<const char*>(payload.data()), payload.size()});
    if (!config) check_failed(__FILE__, __LINE__, config.error().message().c_str());
    return {at, config.value()};
}

}  // namespace lockstep::core
