// Who votes, and how that changes (S12, S16). A replica whose memory or disk is gone comes back as another life: the
// leader has it learn, and when it holds the log, two configs put it in its predecessor's place, one after the other.
// Single changes are those of Raft with the rule that mended them: not before a no-op of the own ballot is committed
// (Ongaro, dissertation, 2014, section 4.1, and "bug in single-server membership changes", raft-dev, 2015).
#include "consensus/core/core.h"

#include "log/entry.h"
#include "log/planted.h"

#include <algorithm>
#include <array>

namespace lockstep::core {

// A replica that holds no log takes part in the one that there is. It counts for nothing in it before a config names
// this life, so that it does not matter which leader asks, or when.
void Core::receive(Now, const Peer&, const Join& message, Effects& effects) {
    if (genesis_ != 0 || message.genesis == 0) return;
    if (options_.rejoins != 0 && message.genesis != options_.rejoins) return;
    genesis_ = message.genesis;
    config_ = message.voters;
    joins_ = true;
    effects.push(effect::KeepFormation{genesis_, config_, false});
}

// The config that an entry of the own ring brings, which follows `before`. A lane may be writing there: what is taken
// is a copy that verifies. None: it is something else by now.
std::optional<ConfigAt> Core::config_in_ring(const log::Point& before, const log::VerifiedEntry& entry) const {
    std::array<std::byte, kMaxConfigBytes> copy;
    if (entry.payload.size() > copy.size()) return std::nullopt;
    std::ranges::copy(entry.payload, copy.begin());
    const BytesView payload(copy.data(), entry.payload.size());
    const std::uint64_t hash = log::payload_hash(payload, genesis_);
    if (log::entry_checksum(entry.header, hash, before.checksum) != entry.header.checksum) return std::nullopt;
    return config_in(payload, entry.end.index);
}

void Core::take_config(const ConfigAt& config) {
    config_ = config.config;
    config_at_ = config.at;
}

// Of all that stands in the own ring, believed or not (S5): what a campaign will have to do with. A lane may be writing
// there; the fence and the scan of the campaign say what counts.
ConfigAt Core::newest_config() const {
    ConfigAt newest = committed_config_;
    log::Point at = commit_;
    while (const auto entry = log::next_entry(ring_, at, log::kNoLimit)) {
        if (entry->header.kind == log::EntryKind::config) {
            const auto config = config_in_ring(at, *entry);
            if (!config) break;
            newest = *config;
        }
        at = entry->end;
    }
    return newest;
}

// The voters are to be the members, each with the life that is there. Who is lost goes first: with one lost of three, a
// fourth would make three needed where two are there.
void Core::replace_lost_voters(Now now, Effects& effects) {
    // S16: not before the own no-op is committed, and the last change applied.
    if (state_ != State::leader || no_op_.index == Index{}) return;
    if (commit_.position < no_op_.position && !LOCKSTEP_PLANTED(config_before_no_op)) return;
    if (applied_.index < config_at_ && !LOCKSTEP_PLANTED(configs_at_once)) return;
    for (const bool removes : {true, false}) {
        for (const Peer& peer : peers()) {
            const Voter life{peer.id, peer.lane.incarnation};
            if (config_.names(life) || !caught_up(peer)) continue;
            Config config = config_;
            if (config.voters.remove(life.id) != removes) continue;
            if (!removes) config.voters.add(life);
            if (keeps_going(config, life.id)) return append_config(now, config, effects);
        }
    }
}

// Whether the cluster goes on with that config even if the newcomer is lost at this moment, or as well as it did: where
// all voters are there, none is lost. Who is there can be repaired from what this ring still holds (S6): boards say how
// far each has come, or less.
bool Core::keeps_going(const Config& config, ReplicaId newcomer) const {
    const auto there = [&](Voter voter) {
        if (voter == self()) return true;
        const Peer* peer = peer_of(voter.id);
        return peer != nullptr && peer->up && peer->incarnation == voter.incarnation &&
               peer->lane.state == Lane::State::open && streaming(peer->lane) && peer->applied >= low_mark_;
    };
    return has_majority(config, [&](Voter voter) { return voter.id != newcomer && there(voter); }) ||
           std::ranges::all_of(config.voters.all(), there);
}

// S12: taken in only with the log in hand, or the voters would wait for it. A learner is behind by what is on its way
// whenever one looks, so what counts is the end as it was a heartbeat ago.
bool Core::caught_up(const Peer& peer) const {
    if (!peer.up || peer.lane.state != Lane::State::open || peer.lane.incarnation != peer.incarnation) return false;
    if (LOCKSTEP_PLANTED(learner_not_caught_up)) return true;
    if (!streaming(peer.lane)) return false;
    const Position holds = counts_kept() ? peer.lane.durable : peer.lane.landed.position;
    return caught_up_at_ != Position{} && holds >= caught_up_at_;
}

}  // namespace lockstep::core
