// Keeping the log on disk: what is asked for, and what counts once it is there (S6, S8, S10, S11). The disk itself, and
// what of it stays when another log is believed, is not the core's.
#include "consensus/core/core.h"

#include "log/check.h"

#include <algorithm>

namespace lockstep::core {

// Once in a turn, for all that has come to be believed in it: leader and followers alike.
void Core::keep_log(Now now, bool heartbeat, Effects& effects) {
    if (!keeps_log() || genesis_ == 0 || !formation_kept_) return;
    // A new generation is asked for even where it adds nothing: what older ones say does not count any more.
    const bool more = end_.index > to_keep_.index || generation_ != asked_generation_;
    // The commit goes with the next entries, unless none come, or it holds up much of the ring.
    const Index known = std::min(commit_.index, kept_.index);
    const bool held_up = kept_commit_.index < known && (heartbeat || waits_for_room_ ||
                                                        commit_.position - kept_commit_.position >= ring_.bytes() / 16);
    if (!more && !held_up) return;
    asked_generation_ = generation_;
    if (kept_.index == to_keep_.index) kept_rose_ns_ = now.monotonic_ns;  // it starts to wait now
    effects.push(effect::KeepLog{generation_, to_keep_, end_, commit_.index, held_up});
    to_keep_ = end_;
}

// From the commit on the log may become another one. What was said to be on disk behind it counts no more until it is
// said again (S10).
void Core::keep_anew() {
    ++generation_;
    if (to_keep_.index > commit_.index) to_keep_ = commit_;
    if (kept_.index > commit_.index) kept_ = commit_;
}

void Core::on(Now now, const event::LogKept& kept, Effects& effects) {
    if (kept.generation != generation_) return;
    LOCKSTEP_CHECK_OP(kept.to.index.value, <=, to_keep_.index.value);
    LOCKSTEP_CHECK_OP(kept.committed.value, <=, commit_.index.value);
    // A restart would begin with the snapshot.
    if (kept_commit_.index < installed_.index && kept.to.index >= installed_.index) kept_commit_ = installed_;
    while (kept_commit_.index < kept.committed) kept_commit_ = log::step_over_verified(ring_, kept_commit_);
    if (catching_up()) fetch(effects);
    if (kept.to.index <= kept_.index) return;
    kept_ = kept.to;
    kept_rose_ns_ = now.monotonic_ns;
    if (state_ == State::leader) {
        advance_commit(now);
    } else if (state_ == State::adopting && adoption_.verified) {
        install_adopted(now, effects);
    } else {
        // A commit waits for this word.
        report_consumed(counts_kept(), effects);
    }
}

// Whether the disk has not done what was asked of it for so long that this replica is as good as dead.
bool Core::keeping_hangs(Now now) const {
    return counts_kept() && kept_.index < to_keep_.index &&
           now.monotonic_ns > kept_rose_ns_ + options_.election_timeout_ns;
}

}  // namespace lockstep::core
