// Forming a cluster (S7): every voter holds the genesis and all incarnations before anyone may campaign.
#include "consensus/core/core.h"

#include <algorithm>

namespace lockstep::core {

// The former is the member that campaigns first. All that it needs is that every other member is there once, and says
// that it holds nothing: where one does there is a cluster already, and this replica has a place in that at most (S12).
void Core::form(Now now, Effects& effects) {
    if (!options_.form || formed_ || now.monotonic_ns < form_again_ns_) return;
    form_again_ns_ = now.monotonic_ns + options_.heartbeat_ns * 2;
    if (own_rank_ != 0) {
        // The former may have lost our answer, or we its last word.
        Peer* former = peer_of(options_.members[0]);
        if (genesis_ == 0 || formation_kept_) effects.push(effect::Send{former->id, FormAck{genesis_}});
        return;
    }
    if (genesis_ == 0) {
        if (!std::ranges::all_of(peers(), [](const Peer& peer) { return peer.up && peer.blank; })) return;
        while (genesis_ == 0) genesis_ = random_.next();
        config_.voters.add(self());
        for (const Peer& peer : peers()) config_.voters.add({peer.id, peer.incarnation});
        effects.push(effect::KeepFormation{genesis_, config_, false});
        return;
    }
    if (!formation_kept_) return;
    for (const Peer& peer : peers())
        if (!peer.form_acked) effects.push(effect::Send{peer.id, Form{genesis_, config_}});
}

void Core::on(Now now, const event::FormationKept& kept, Effects& effects) {
    if (kept.genesis != genesis_ || formation_kept_) return;
    formation_kept_ = true;
    // The log starts at the genesis.
    ring_.set_genesis(genesis_);
    scratch_.set_genesis(genesis_);
    commit_ = applied_ = end_ = to_keep_ = kept_ = kept_commit_ = log::Point{{}, {}, genesis_, {}, 0};
    first_config_ = config_;
    committed_config_ = {{}, config_};
    if (joins_) return learn_formed(now, effects);
    form_again_ns_ = 0;
    form(now, effects);
    if (own_rank_ == 0 && peer_count_ == 0) learn_formed(now, effects);
}

void Core::receive(Now, const Peer& from, const Form& message, Effects& effects) {
    if (!options_.form || from.rank != 0) return;
    if (genesis_ == 0) {
        // A former that knows another life of this replica will hear of this one, and cannot finish.
        if (message.genesis == 0 || !message.voters.names(self())) return;
        genesis_ = message.genesis;
        config_ = message.voters;
        effects.push(effect::KeepFormation{genesis_, config_, false});
    } else if (genesis_ == message.genesis && formation_kept_) {
        effects.push(effect::Send{from.id, FormAck{genesis_}});
    }
}

void Core::receive(Now now, Peer& from, const FormAck& message, Effects& effects) {
    if (own_rank_ == 0 && message.genesis == 0) {
        from.blank = true;
        if (genesis_ != 0) return;
        form_again_ns_ = 0;
        return form(now, effects);
    }
    if (own_rank_ != 0 || message.genesis != genesis_ || !formation_kept_) return;
    if (!config_.names({from.id, from.incarnation})) return;
    from.form_acked = true;
    if (formed_) {
        effects.push(effect::Send{from.id, Formed{genesis_}});
    } else if (std::ranges::all_of(peers(), &Peer::form_acked)) {
        learn_formed(now, effects);
        for (const Peer& peer : peers()) effects.push(effect::Send{peer.id, Formed{genesis_}});
    }
}

void Core::receive(Now now, const Peer&, const Formed& message, Effects& effects) {
    if (message.genesis == genesis_ && formation_kept_) learn_formed(now, effects);
}

void Core::learn_formed(Now now, Effects& effects) {
    if (formed_) return;
    formed_ = true;
    effects.push(effect::KeepFormation{genesis_, first_config_, true});
    campaign_at_ns_ = now.monotonic_ns + campaign_delay_ns();
}

}  // namespace lockstep::core
