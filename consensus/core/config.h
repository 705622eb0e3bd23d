// Who votes, and what a majority is (S5, S7, S12).
#pragma once

#include "log/planted.h"

#include <lockstep/options.h>
#include <lockstep/result.h>
#include <lockstep/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::core {

// floor(n/2)+1, everywhere (S7).
constexpr std::size_t majority(std::size_t voters) {
    if (voters % 2 == 0 && LOCKSTEP_PLANTED(majority_off_by_one)) return voters / 2;
    return voters / 2 + 1;
}

// A voter is the pair: a replica that lost its memory is another one (S12).
struct Voter {
    ReplicaId id;
    Incarnation incarnation;
    friend bool operator==(const Voter&, const Voter&) = default;
};

// A set of voters, each id at most once.
class VoterSet {
 public:
    // False if it is full or has that id already.
    bool add(Voter voter);
    // False if none has that id.
    bool remove(ReplicaId id);
    std::span<const Voter> all() const { return {voters_.data(), count_}; }
    std::size_t size() const { return count_; }
    bool has(Voter voter) const;
    // The place of `voter` in all(), if it is one.
    std::optional<std::size_t> find(Voter voter) const;
    friend bool operator==(const VoterSet&, const VoterSet&) = default;

 private:
    std::array<Voter, kMaxReplicas> voters_{};
    std::size_t count_ = 0;
};

// The voters of a cluster; while a joint change is under way, two sets that both must agree (S16).
struct Config {
    VoterSet voters;
    VoterSet next;  // empty unless joint

    bool joint() const { return next.size() != 0; }
    bool names(Voter voter) const { return voters.has(voter) || next.has(voter); }
    friend bool operator==(const Config&, const Config&) = default;
};

// A config and the index of the entry that brought it; 0 for the one that the cluster began with.
struct ConfigAt {
    Index at;
    Config config;
    friend bool operator==(const ConfigAt&, const ConfigAt&) = default;
};

// The payload of a config entry, and what snapshots carry: two counts, then nine bytes for each voter.
inline constexpr std::size_t kMaxConfigBytes = 2 + 2 * kMaxReplicas * (1 + sizeof(std::uint64_t));
std::string bytes_of(const Config& config);
// The bytes may be anything; the error says what is wrong with them.
Result<Config> config_of(std::string_view bytes);
// What a config entry brings, of a log that was verified and stands still. A payload that says none breaks an
// invariant: aborts.
ConfigAt config_in(BytesView payload, Index at);

// Whether those voters for whom `said_yes(voter)` holds are a majority of each set. Empty configs have none.
template <class SaidYes>
bool has_majority(const Config& config, SaidYes&& said_yes) {
    const auto enough = [&](const VoterSet& set) {
        std::size_t yes = 0;
        for (const Voter& voter : set.all()) yes += said_yes(voter) ? 1 : 0;
        return set.size() != 0 && yes >= majority(set.size());
    };
    return enough(config.voters) && (!config.joint() || enough(config.next));
}

// The highest value that a majority of each set is at or above; `value_of(voter)` gives a voter's. S6's commit rule
// and a leader's last contact with a majority are both this. `config` has a voter at least.
template <class Value, class ValueOf>
Value majority_reached(const Config& config, ValueOf&& value_of) {
    const auto reached = [&](const VoterSet& set) {
        std::array<Value, kMaxReplicas> values{};
        std::size_t count = 0;
        for (const Voter& voter : set.all()) {
            // Insertion into falling order: sets are at most kMaxReplicas large.
            const Value value = value_of(voter);
            std::size_t at = count++;
            for (; at > 0 && values[at - 1] < value; --at) values[at] = values[at - 1];
            values[at] = value;
        }
        return values[majority(count) - 1];
    };
    const Value first = reached(config.voters);
    if (!config.joint()) return first;
    const Value second = reached(config.next);
    return second < first ? second : first;
}

}  // namespace lockstep::core
