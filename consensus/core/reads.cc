// Linearizable reads by a round of probes (S15; Raft's read index, Ongaro 2014, section 6.4, with one-sided writes).
#include "consensus/core/core.h"

#include "log/planted.h"

#include <limits>

namespace lockstep::core {

std::optional<std::uint64_t> Core::read(Now) {
    if (state_ != State::leader) return std::nullopt;
    return ++last_ticket_;
}

// One round at a time; reads that come meanwhile share the next one, whose probes are posted after all of them.
void Core::start_read_round(Effects& effects) {
    const bool own_committed = (no_op_.index != Index{} && commit_.position >= no_op_.position) ||
                               LOCKSTEP_PLANTED(read_before_no_op);
    if (!own_committed || read_round_probe_ != 0 || last_ticket_ == answered_through_) return;
    read_round_through_ = last_ticket_;
    read_round_commit_ = commit_.index;
    read_round_probe_ = LOCKSTEP_PLANTED(probe_reused) ? last_probe_ : ++last_probe_;
    read_round_confirmed_ = LOCKSTEP_PLANTED(read_without_round);
    probe_due_ = true;
    finish_reads(effects);  // a cluster of one
}

void Core::post_probes(Now now, Effects& effects) {
    if (!probe_due_) return;
    probe_due_ = false;
    for (Peer& peer : peers()) {
        Lane& lane = peer.lane;
        if (lane.state != Lane::State::open || lane.flights.full()) continue;
        lane.flights.push(Flight{.start = lane.posted, .upto = lane.posted, .write = false, .whole = false, .end = {},
                                 .probe = last_probe_, .posted_ns = now.monotonic_ns});
        effects.push(effect::PostProbe{lane.id, last_probe_});
    }
}

// No clock is involved: a probe that landed through a lane of this ballot proves that its follower had promised
// nothing newer when it landed, and a majority of those leaves no room for a newer leader's commit before the read.
void Core::finish_reads(Effects& effects) {
    if (state_ != State::leader || read_round_probe_ == 0) return;
    if (!read_round_confirmed_) {
        const auto probed = [&](Voter voter) {
            if (voter == self()) return std::numeric_limits<std::uint64_t>::max();
            const Peer* peer = peer_of(voter.id);
            const bool counts = peer != nullptr && peer->lane.state == Lane::State::open &&
                                peer->lane.incarnation == voter.incarnation;
            return counts ? peer->lane.probe_landed : 0;
        };
        read_round_confirmed_ = majority_reached<std::uint64_t>(config_, probed) >= read_round_probe_;
    }
    if (!read_round_confirmed_ || applied_.index < read_round_commit_) return;
    answered_through_ = read_round_through_;
    read_round_probe_ = 0;
    effects.push(effect::ReadsReady{answered_through_});
}

void Core::lose_reads(Effects& effects) {
    if (last_ticket_ != answered_through_) effects.push(effect::ReadsLost{});
    answered_through_ = last_ticket_;
    read_round_probe_ = 0;
    probe_due_ = false;
}

}  // namespace lockstep::core
