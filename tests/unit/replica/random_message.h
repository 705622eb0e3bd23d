// Random control messages in bounds, and their fields for comparison. A field that is added to a message does not
// compile here until it is compared too.
#pragma once

#include "consensus/core/message.h"

#include <random>
#include <tuple>
#include <variant>

namespace lockstep::core {

inline auto fields(const Form& m) {
    const auto& [genesis, voters] = m;
    return std::tie(genesis, voters);
}
inline auto fields(const FormAck& m) {
    const auto& [genesis] = m;
    return std::tie(genesis);
}
inline auto fields(const Formed& m) {
    const auto& [genesis] = m;
    return std::tie(genesis);
}
inline auto fields(const Join& m) {
    const auto& [genesis, voters] = m;
    return std::tie(genesis, voters);
}
inline auto fields(const PreVote& m) {
    const auto& [genesis, ballot, commit, handed_over] = m;
    return std::tie(genesis, ballot, commit, handed_over);
}
inline auto fields(const PreVoteReply& m) {
    const auto& [ballot, granted, better, promised] = m;
    return std::tie(ballot, granted, better, promised);
}
inline auto fields(const Prepare& m) {
    const auto& [genesis, ballot, open_number] = m;
    return std::tie(genesis, ballot, open_number);
}
inline auto fields(const Promise& m) {
    const auto& [ballot, candidate, open_number, last, commit, config, low_mark, consumed, loss, lane] = m;
    return std::tie(ballot, candidate, open_number, last, commit, config, low_mark, consumed, loss, lane);
}
inline auto fields(const Refusal& m) {
    const auto& [ballot, open_number, promised, hears_leader] = m;
    return std::tie(ballot, open_number, promised, hears_leader);
}
inline auto fields(const Campaign& m) {
    const auto& [ballot] = m;
    return std::tie(ballot);
}

inline auto fields(const Behind& m) {
    const auto& [genesis, ballot, open_number, low_mark] = m;
    return std::tie(genesis, ballot, open_number, low_mark);
}

inline bool same(const Message& left, const Message& right) {
    if (left.index() != right.index()) return false;
    return std::visit(
        [&](const auto& kind) { return fields(kind) == fields(std::get<std::decay_t<decltype(kind)>>(right)); }, left);
}

class RandomMessages {
 public:
    explicit RandomMessages(std::uint64_t seed) : random_(seed) {}

    // Of the kind with this place in Message.
    Message next(std::size_t kind) {
        switch (kind) {
            case 0: return Form{nonzero(), {voters(1), voters(0)}};
            case 1: return FormAck{nonzero()};
            case 2: return Formed{nonzero()};
            case 3: return Join{nonzero(), {voters(0), voters(0)}};
            case 4: return PreVote{nonzero(), ballot(), position(~std::uint64_t{0}), ballot_or_none()};
            case 5: {
                const std::uint64_t answer = random_() % 3;
                return PreVoteReply{ballot(), answer == 1, answer == 2, ballot_or_none()};
            }
            case 6: return Prepare{nonzero(), ballot(), number()};
            case 7: return promise();
            case 8: return Refusal{ballot(), number(), ballot_or_none(), random_() % 2 == 0};
            case 9: return Campaign{ballot()};
            default: return Behind{nonzero(), ballot(), number(), {number()}};
        }
    }

 private:
    // Of any magnitude.
    std::uint64_t number() { return random_() >> random_() % 64; }
    std::uint64_t nonzero() { return number() | std::uint64_t{1} << random_() % 64; }
    ReplicaId id() { return {static_cast<std::uint8_t>(1 + random_() % 255)}; }
    Ballot ballot() { return Ballot::of(number() >> 8, id()); }
    Ballot ballot_or_none() { return random_() % 4 == 0 ? Ballot{} : ballot(); }
    Position position(std::uint64_t most) {
        const std::uint64_t value = number();
        return {std::min(value, most) / log::kEntryAlignment * log::kEntryAlignment};
    }
    VoterSet voters(std::size_t least) {
        VoterSet set;
        const std::size_t count = least + random_() % (kMaxReplicas + 1 - least);
        while (set.size() < count) set.add({id(), {nonzero()}});
        return set;
    }
    Promise promise() {
        const log::Point last{{number()}, position(~std::uint64_t{0}), random_(), ballot_or_none(), number()};
        const log::Point commit{{std::min(number(), last.index.value)}, position(last.position.value), random_(),
                                ballot_or_none(), number()};
        Promise made{.ballot = ballot(),
                     .candidate = {number()},
                     .open_number = number(),
                     .last = last,
                     .commit = commit,
                     .config = {std::min(number(), last.index.value)},
                     .low_mark = position(last.position.value),
                     .consumed = position(last.position.value),
                     .loss = static_cast<Loss>(random_() % 3),
                     .lane = {}};
        made.lane.size = static_cast<std::uint8_t>(random_() % (transport::LaneAddress::kMaxBytes + 1));
        for (std::size_t at = 0; at < made.lane.size; ++at) made.lane.bytes[at] = static_cast<std::byte>(random_());
        return made;
    }

    std::mt19937_64 random_;
};

}  // namespace lockstep::core
