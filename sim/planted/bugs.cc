#include "sim/planted/bugs.h"

#include <algorithm>
#include <array>

namespace lockstep::sim {

namespace {

#define LOCKSTEP_BUG(name, rules, what, seeds) Bug{PlantedBug::name, #name, rules, what, seeds, false}
#define LOCKSTEP_DURABLE_BUG(name, rules, what, seeds) Bug{PlantedBug::name, #name, rules, what, seeds, true}

constexpr std::array kBugs{
    LOCKSTEP_BUG(fence_skipped, "S2 F3", "a fence leaves the lane standing", 50),
    LOCKSTEP_BUG(packet_after_fence, "F3", "one packet lands after the fence", 50),
    LOCKSTEP_BUG(old_lane_counted, "S10 F5", "a completion of an ended lane counts on the next one", 200),
    LOCKSTEP_BUG(chain_seed_ignored, "section 4", "an entry is not chained to the one before, by checksum and ballot",
                 300),
    LOCKSTEP_BUG(no_reserve, "section 4", "commands fill the ring to its last byte", 200),
    LOCKSTEP_BUG(hard_state_in_place, "section 4", "the hard state is written over the one that counts", 0),
    LOCKSTEP_BUG(failed_sync_ignored, "S13", "a failed fdatasync of the log is taken for done", 0),
    LOCKSTEP_BUG(failed_sync_repeated, "S13", "a failed fdatasync is done again, and then believed", 0),
    LOCKSTEP_BUG(truncated_from_the_front, "S10", "a cut removes segments front to back", 0),
    LOCKSTEP_BUG(corruption_cut, "S14", "a break in what was acknowledged is cut as a torn tail", 0),
    LOCKSTEP_BUG(floor_behind_acknowledged, "S14", "the floor on disk lags what is acknowledged by a batch", 0),
    LOCKSTEP_BUG(short_chunk_accepted, "section 8", "a snapshot's chunk that is short or wrong is taken as it is", 0),
    LOCKSTEP_BUG(scan_before_fence, "S2", "the ring is scanned before the lane is fenced", 1000),
    LOCKSTEP_BUG(promise_before_disk, "S1", "a promise is given before it is on disk", 0),
    LOCKSTEP_BUG(pre_vote_raises_ballot, "S3", "a granted pre-vote is kept as a promise", 50),
    LOCKSTEP_BUG(promise_forgotten, "S1", "who suspects its leader forgets its promise", 50),
    LOCKSTEP_BUG(lower_ballot_promised, "S1", "a lower ballot than before is promised", 200),
    LOCKSTEP_BUG(low_mark_not_raised, "S6", "the low mark stays below what was reported free", 200),
    LOCKSTEP_BUG(index_before_ballot, "S4", "logs are compared by (index, ballot)", 500),
    LOCKSTEP_BUG(adoption_by_index_only, "S4", "logs are compared by index", 500),
    LOCKSTEP_BUG(adoption_unverified, "S4 F6", "as much is adopted as can be read", 1500),
    LOCKSTEP_BUG(adoption_into_own_ring, "S4", "the adopted log is read straight into the own ring", 1500),
    LOCKSTEP_BUG(adoption_clears_own_tail, "S4", "the own tail is cut before the other is there", 3000),
    LOCKSTEP_BUG(adoption_impossible_retried, "S3", "one that cannot adopt campaigns again and asks nobody else", 2000),
    LOCKSTEP_BUG(retry_forgotten, "section 8", "a lost wake-up: the timer of the next campaign is not set", 100),
    LOCKSTEP_BUG(majority_off_by_one, "S7", "half is a majority of an even number", 300),
    LOCKSTEP_BUG(corrupt_promise_counted, "S14", "a promise counts though what was acknowledged has rotted", 0),
    LOCKSTEP_BUG(own_copy_before_disk, "S6", "a leader counts its own copy before it is on its disk", 0),
    LOCKSTEP_BUG(kept_without_generation, "S10", "what the disk says of an older log counts for the present one", 0),
    LOCKSTEP_BUG(old_ballot_counted, "S6", "entries of older ballots are committed by counting", 3000),
    LOCKSTEP_BUG(no_op_before_majority, "S6", "the no-op is appended before a majority holds what was adopted", 3000),
    LOCKSTEP_BUG(open_number_ignored, "S1", "a repeated or older prepare opens a lane once more", 200),
    LOCKSTEP_BUG(older_answer_believed, "S1", "the answer to an older open is taken for the newest one's", 500),
    LOCKSTEP_BUG(incarnation_ignored, "S12", "a life without memory counts as the voter that it was", 3000),
    LOCKSTEP_BUG(ring_overwritten_unapplied, "S11", "the leader overwrites what is not applied", 100),
    LOCKSTEP_BUG(ring_reused_while_read, "S11 F9", "the leader overwrites what an unfinished write reads", 3000),
    LOCKSTEP_BUG(kept_for_majority_off, "S6", "nothing is kept to repair a majority from", 500),
    LOCKSTEP_BUG(follower_space_ignored, "S11", "a follower's free space is not asked for", 300),
    LOCKSTEP_BUG(tail_believed, "S8", "entries of older ballots behind the promised one's are believed", 200),
    LOCKSTEP_BUG(certificate_unchecked, "S9", "a commit notice is believed without its checksum", 200),
    LOCKSTEP_BUG(certificate_needs_own_ballot, "S9", "a notice is believed about entries of the promised ballot only",
                 0),
    LOCKSTEP_BUG(read_before_no_op, "S15", "a read does not wait for the own no-op", 200),
    LOCKSTEP_BUG(read_without_round, "S15", "a read asks no majority", 200),
    LOCKSTEP_BUG(probe_reused, "S15", "a read takes a probe that was posted before it", 200),
    LOCKSTEP_BUG(stale_heartbeat_heard, "section 8", "a board counts as heard whose heartbeats stand still", 1500),
    LOCKSTEP_BUG(wall_clock_stamped, "section 8", "entries bear the wall clock's time", 200),
    LOCKSTEP_BUG(conflicting_tail_kept, "section 8", "a snapshot leaves a tail of another log above it", 0),
    LOCKSTEP_BUG(promise_of_another_life, "S12", "a promise of a life that is no voter counts as its predecessor's", 0),
    LOCKSTEP_BUG(copy_of_another_life, "S12", "what a life that is no voter holds counts as its predecessor's", 0),
    LOCKSTEP_BUG(config_when_committed, "S16", "a config is in effect when committed, and not when appended", 0),
    LOCKSTEP_BUG(decided_by_committed, "S5", "a campaign is decided by the newest config that is committed", 0),
    LOCKSTEP_BUG(adopted_config_ignored, "S5", "a campaign is decided by the own config, not by the adopted log's", 0),
    LOCKSTEP_BUG(config_outlives_its_entry, "S8 S16", "a config stays in effect when its entry is given up", 0),
    LOCKSTEP_BUG(config_before_no_op, "S16", "a leader appends a config before its own no-op is committed", 0),
    LOCKSTEP_BUG(configs_at_once, "S16", "a leader appends a config while another is under way", 0),
    LOCKSTEP_BUG(learner_not_caught_up, "S12", "a newcomer is taken in before it holds the log", 0),
    LOCKSTEP_BUG(snapshot_names_newest, "S16", "a snapshot names the voters of the newest config, committed or not", 0),
    LOCKSTEP_BUG(log_cut_at_promise, "S8", "a new promise cuts the log on disk at the commit", 0),
    LOCKSTEP_BUG(stopped_and_writable, "S13", "a stopped replica does not fence its ring", 0),
};

#undef LOCKSTEP_BUG
#undef LOCKSTEP_DURABLE_BUG

}  // namespace

std::span<const Bug> bugs() { return kBugs; }

const Bug* bug_named(const std::string& name) {
    const auto found = std::ranges::find(kBugs, name, [](const Bug& bug) { return std::string(bug.name); });
    return found == kBugs.end() ? nullptr : &*found;
}

}  // namespace lockstep::sim
