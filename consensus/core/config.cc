#include "consensus/core/config.h"

#include <algorithm>

namespace lockstep::core {

bool VoterSet::add(Voter voter) {
    const auto same_id = [&](const Voter& other) { return other.id == voter.id; };
    if (count_ == voters_.size() || std::ranges::any_of(all(), same_id)) return false;
    voters_[count_++] = voter;
    return true;
}

std::optional<std::size_t> VoterSet::find(Voter voter) const {
    const auto found = std::ranges::find(all(), voter);
    if (found == all().end()) return std::nullopt;
    return static_cast<std::size_t>(found - all().begin());
}

bool VoterSet::has(Voter voter) const { return find(voter).has_value(); }

}  // namespace lockstep::core
