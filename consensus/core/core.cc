#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>
#include <limits>

namespace lockstep::core {

namespace {

// For a planted bug: `life` is taken for the voter that had its id before.
Config renamed(const Config& config, Voter life) {
    Config taken;
    for (const Voter& voter : config.voters.all()) taken.voters.add(voter.id == life.id ? life : voter);
    return taken;
}

}  // namespace

Core::Core(const CoreOptions& options, log::Ring ring, log::Ring scratch)
    : options_(options),
      ring_(ring),
      scratch_(LOCKSTEP_PLANTED(adoption_into_own_ring) ? ring : scratch),
      geometry_(ring.geometry()),
      random_(options.random_seed),
      lap_ends_(ring.bytes()) {
    LOCKSTEP_CHECK_OP(scratch.bytes(), ==, ring.bytes());
    LOCKSTEP_CHECK_OP(options.member_count, <=, kMaxReplicas);
    LOCKSTEP_CHECK(static_cast<bool>(options.incarnation));
    own_rank_ = options.member_count;
    for (std::size_t rank = 0; rank < options.member_count; ++rank) {
        if (options.members[rank] == options.id) {
            own_rank_ = rank;
            continue;
        }
        Peer& peer = peers_[peer_count_++];
        peer.id = options.members[rank];
        peer.rank = rank;
    }
    LOCKSTEP_CHECK_OP(own_rank_, <, options.member_count);
}

Core::Core(const CoreOptions& options, log::Ring ring, log::Ring scratch, const Recovered& recovered)
    : Core(options, ring, scratch) {
    genesis_ = recovered.genesis;
    first_config_ = recovered.first_config;
    config_ = recovered.config;
    config_at_ = recovered.commit.index;
    committed_config_ = {config_at_, config_};
    formation_kept_ = true;
    formed_ = recovered.formed;
    ring_.set_genesis(genesis_);
    scratch_.set_genesis(genesis_);
    promised_ = highest_seen_ = recovered.promised;
    promised_to_ = recovered.promised_to;
    // S8: what stands behind the commit was accepted and is told to candidates, but is not believed by itself.
    commit_ = applied_ = end_ = to_keep_ = kept_ = recovered.commit;
    low_mark_ = recovered.low_mark;
    kept_commit_ = recovered.commit;
    lost_until_ = recovered.lost_until;
    lost_in_ = recovered.lost_in;
    if (!made_up_for()) loss_ = recovered.loss;
}

void Core::step(Now now, const Event& event, Effects& effects) {
    std::visit([&](const auto& what) { on(now, what, effects); }, event);
    set_deadline(now);
}

void Core::on(Now now, const event::Tick&, Effects& effects) {
    form(now, effects);
    beat(now, effects);
    if (state_ == State::leader) {
        check_leadership(now, effects);
        if (state_ == State::leader) {
            reopen_lanes(now, effects);
            append_no_op_when_ready(now, effects);
        }
    } else {
        consider_campaign(now, effects);
    }
    if (state_ == State::preparing) {
        for (Peer& peer : peers())
            if (!peer.promise && now.monotonic_ns >= peer.prepare_again_ns) send_prepare(now, peer, effects);
    }
}

void Core::on(Now now, const event::PeerUp& up, Effects& effects) {
    Peer* peer = peer_of(up.peer);
    if (peer == nullptr) return;
    peer->up = true;
    if (peer->incarnation != up.incarnation) {
        if (LOCKSTEP_PLANTED(incarnation_ignored)) config_ = renamed(config_, {peer->id, up.incarnation});
        peer->incarnation = up.incarnation;
        peer->form_acked = false;
        peer->blank = false;
        peer->applied = {};
        // What the life before lacked is not what this one lacks.
        if (peer->lane.state == Lane::State::detached) peer->lane.state = Lane::State::none;
    }
    peer->heartbeats = 0;  // a life that came back with its disk counts anew
    form_again_ns_ = 0;
    form(now, effects);
    if (state_ == State::preparing && !peer->promise) send_prepare(now, *peer, effects);
    if (state_ == State::leader && peer->lane.state == Lane::State::none) peer->prepare_again_ns = now.monotonic_ns;
}

void Core::on(Now now, const event::PeerDown& down, Effects&) {
    Peer* peer = peer_of(down.peer);
    if (peer == nullptr) return;
    peer->up = false;
    // A process that ended takes its control link with it: the suspicion starts now, not after a time-out.
    if (down.suspect_dead && leader_ == peer->id && state_ == State::follower) {
        leader_ = {};
        heard_ns_ = 0;
        retry_pause_ns_ = 0;
        campaign_at_ns_ = now.monotonic_ns + campaign_delay_ns();
    }
}

void Core::on(Now now, const event::Received& received, Effects& effects) {
    Peer* from = peer_of(received.from);
    if (from == nullptr) return;
    if (from->incarnation != received.incarnation) {
        // The message outran our own connection to this life of the peer, or comes from one that has ended: the newer
        // life is the one that is up. A peer that is up has the life that its connection says.
        if (from->up) return;
        from->incarnation = received.incarnation;
        from->form_acked = false;
        from->blank = false;
        from->applied = {};
        from->heartbeats = 0;
    }
    std::visit([&](const auto& message) { receive(now, *from, message, effects); }, received.message);
}

Core::Peer* Core::peer_of(ReplicaId id) {
    const auto found = std::ranges::find(peers(), id, &Peer::id);
    return found == peers().end() ? nullptr : &*found;
}

const Core::Peer* Core::peer_of(ReplicaId id) const {
    const auto found = std::ranges::find(peers(), id, &Peer::id);
    return found == peers().end() ? nullptr : &*found;
}

Role Core::role() const {
    if (!formed_) return Role::forming;
    if (!votes() || loss_ == Loss::corrupt) return Role::learner;
    switch (state_) {
        case State::follower:
        case State::pre_voting:
            return Role::follower;
        case State::preparing:
        case State::adopting:
            return Role::candidate;
        case State::leader:
            return Role::leader;
    }
    return Role::follower;
}

ReplicaId Core::leader() const { return state_ == State::leader ? options_.id : leader_; }

// Between three quarters and five quarters of it, so that replicas that failed together do not retry together.
std::uint64_t Core::spread(std::uint64_t ns) { return ns * 3 / 4 + random_.below(ns / 2 + 1); }

void Core::set_deadline(Now now) {
    std::uint64_t at = beat_at_ns_;
    const auto sooner = [&](std::uint64_t due_ns) {
        if (due_ns != 0) at = std::min(at, due_ns);
    };
    if (!formed_) sooner(form_again_ns_);
    if (asked_promise_.serial == 0) {
        if (state_ == State::follower) sooner(campaign_at_ns_);
        if (state_ != State::follower && state_ != State::leader) sooner(campaign_ends_ns_);
    }
    if (state_ == State::preparing || state_ == State::leader)
        for (const Peer& peer : peers())
            if (peer.up) sooner(peer.prepare_again_ns);
    if (look_again_) at = 0;
    deadline_ns_ = std::max(at, now.monotonic_ns);
}

}  // namespace lockstep::core
