// Keeping the log on disk: what is asked for, and what counts once it is there (S6, S8, S10, S11). The disk itself, and
// what of it stays when another log is believed, is not the core's.
#include "consensus/core/core.h"

#include "log/check.h"
#include "log/planted.h"

#include <algorithm>

namespace lockstep::core {

namespace {

// Where no commit waits for the disk, it is given what has gathered, not the entries of every turn.
constexpr std::uint64_t kGivenBytes = 64 * 1024;

}  // namespace

// Once in a turn, for all that has come to be believed in it: leader and followers alike.
void Core::keep_log(Now now, bool heartbeat, Effects& effects) {
    if (!keeps_log() || genesis_ == 0 || !formation_kept_) return;
    // A new generation is asked for even where it adds nothing: what older ones say does not count any more.
    const bool more = end_.index > to_keep_.index || generation_ != asked_generation_;
    if (!counts_kept()) {
        const bool enough = end_.position - to_keep_.position >= std::min(kGivenBytes, ring_.bytes() / 64);
        const bool at_once = (heartbeat || waits_for_room_) && (more || asked_at_once_ < end_.index);
        if (at_once) asked_at_once_ = end_.index;
        const bool anew = generation_ != asked_generation_;
        if (at_once || anew || (more && enough)) ask_to_keep(now, false, !at_once, effects);
        return;
    }
    // The commit goes with the next entries, unless none come, or it holds up much of the ring.
    const Index known = std::min(commit_.index, kept_.index);
    const bool held_up = kept_commit_.index < known && (heartbeat || waits_for_room_ ||
                                                        commit_.position - kept_commit_.position >= ring_.bytes() / 16);
    if (more || held_up) ask_to_keep(now, held_up, false, effects);
}

void Core::ask_to_keep(Now now, bool commit_too, bool gather, Effects& effects) {
    asked_generation_ = generation_;
    if (kept_.index == to_keep_.index) kept_rose_ns_ = now.monotonic_ns;  // it starts to wait now
    effects.push(effect::KeepLog{generation_, to_keep_, end_, commit_.index, commit_too, gather});
    to_keep_ = end_;
}

// From the commit on the log may become another one. What was said to be on disk behind it counts no more until it is
// said again (S10).
void Core::keep_anew() {
    ++generation_;
    if (to_keep_.index > commit_.index) to_keep_ = commit_;
    if (kept_.index > commit_.index) kept_ = commit_;
    asked_at_once_ = std::min(asked_at_once_, commit_.index);
}

void Core::on(Now now, const event::LogKept& kept, Effects& effects) {
    const bool of_older = LOCKSTEP_PLANTED(kept_without_generation) && kept.to.index <= to_keep_.index &&
                          kept.committed <= commit_.index;
    if (kept.generation != generation_ && !of_older) return;
    LOCKSTEP_CHECK_OP(kept.to.index.value, <=, to_keep_.index.value);
    LOCKSTEP_CHECK_OP(kept.committed.value, <=, commit_.index.value);
    if (counts_kept()) {
        // A restart would begin with the snapshot.
        if (kept_commit_.index < installed_.index && kept.to.index >= installed_.index) kept_commit_ = installed_;
        while (kept_commit_.index < kept.committed) kept_commit_ = log::step_over_verified(ring_, kept_commit_);
    }
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

// S11: bytes of the ring are done with when they are applied, and on disk where the log is kept there. In durable mode
// never beyond what this replica would know to be committed if it started again: a lane is repaired from there, and
// leaders no longer hold what is below what was reported.
Position Core::done_with() const {
    if (!keeps_log()) return applied_.position;
    return std::min(applied_.position, counts_kept() ? kept_commit_.position : kept_.position);
}

// Whether the disk has not done what was asked of it for so long that this replica is as good as dead. Where no entry
// waits for it (persist_async), that is so when it is about to hold up the ring.
bool Core::keeping_hangs(Now now) const {
    if (!keeps_log() || kept_.index >= to_keep_.index) return false;
    const bool waited_for = counts_kept() || end_.position - kept_.position >= ring_.bytes() / 2;
    return waited_for && now.monotonic_ns > kept_rose_ns_ + options_.election_timeout_ns;
}

}  // namespace lockstep::core
