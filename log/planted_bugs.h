// The bugs that can be planted: one line each, where in the code it is asked for says what it does.
// sim/planted/bugs.cc tells what rule each breaks, and how it must be found.
#pragma once

#include <cstdint>

namespace lockstep {

enum class PlantedBug : std::uint8_t {
    none,
    // transport/sim
    fence_skipped,
    packet_after_fence,
    old_lane_counted,
    // log
    chain_seed_ignored,
    no_reserve,
    hard_state_in_place,
    failed_sync_ignored,
    failed_sync_repeated,
    truncated_from_the_front,
    corruption_cut,
    floor_behind_acknowledged,
    short_chunk_accepted,
    // consensus/core
    scan_before_fence,
    promise_before_disk,
    pre_vote_raises_ballot,
    promise_forgotten,
    lower_ballot_promised,
    low_mark_not_raised,
    index_before_ballot,
    adoption_by_index_only,
    adoption_unverified,
    adoption_into_own_ring,
    adoption_clears_own_tail,
    adoption_impossible_retried,
    retry_forgotten,
    majority_off_by_one,
    corrupt_promise_counted,
    own_copy_before_disk,
    kept_without_generation,
    old_ballot_counted,
    no_op_before_majority,
    open_number_ignored,
    older_answer_believed,
    incarnation_ignored,
    ring_overwritten_unapplied,
    ring_reused_while_read,
    kept_for_majority_off,
    follower_space_ignored,
    tail_believed,
    certificate_unchecked,
    certificate_needs_own_ballot,
    read_before_no_op,
    read_without_round,
    probe_reused,
    stale_heartbeat_heard,
    wall_clock_stamped,
    conflicting_tail_kept,
    promise_of_another_life,
    copy_of_another_life,
    config_when_committed,
    decided_by_committed,
    adopted_config_ignored,
    config_outlives_its_entry,
    config_before_no_op,
    configs_at_once,
    learner_not_caught_up,
    // consensus/replica
    snapshot_names_newest,
    log_cut_at_promise,
    stopped_and_writable,
};

// The one that is planted now. For one thread's use.
inline PlantedBug planted_bug = PlantedBug::none;

}  // namespace lockstep
