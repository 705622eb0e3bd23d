#!/usr/bin/env bash
# lockstep-sim as its users see it. usage: check_program.sh LOCKSTEP_SIM LOCKSTEP_SIM_PLANTED
set -uo pipefail
sim=$1
planted=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() {
    echo "check_program.sh: $*" >&2
    failed=1
}
# ends STATUS PATTERN COMMAND...: it ends so, and says so.
ends() {
    local status=$1 pattern=$2 output
    shift 2
    output=$("$@" 2>&1)
    local got=$?
    [ "$got" = "$status" ] || fail "$*: ended with $got, not $status: $output"
    grep -qE -- "$pattern" <<<"$output" || fail "$*: did not say \"$pattern\": $output"
}

ends 0 'nothing found.*hash [0-9a-f]{16}' "$sim" --seed 1
[ "$("$sim" --seed 1)" = "$("$sim" --seed 1)" ] || fail "the same seed gave two runs"
ends 0 '^10 seeds from 1 on' "$sim" --seeds 1..10 --jobs 2
ends 0 'nothing found' "$sim" --minutes 0.02 --jobs 2
ends 0 '^lockstep-sim of commit ' "$sim" --seed 2
"$sim" --seed 3 --print | tail -n +2 >three.case
ends 0 'nothing found' "$sim" --replay three.case
[ "$("$sim" --replay three.case | grep -o 'hash.*')" = "$("$sim" --seed 3 | grep -o 'hash.*')" ] ||
    fail "a printed case ran otherwise than its seed"

ends 1 'nothing to run' "$sim"
ends 1 'expected FROM..TO' "$sim" --seeds 5
ends 1 'expected FROM..TO' "$sim" --seeds 7..5
ends 1 'cannot read none.case' "$sim" --replay none.case
echo 'not a case' >bad.case
ends 1 'bad.case: line 1: not a case' "$sim" --replay bad.case
ends 1 'excludes' "$sim" --seed 1 --seeds 1..2
ends 1 'no bug "none"' "$planted" --plant none --seed 1

# What is planted is found: as what it is, and again in a smaller case.
ends 2 'reproduce: lockstep-sim-planted --plant fence_skipped --seed' \
    "$planted" --plant fence_skipped --seeds 1..200 --shrink 5 --jobs 2
found=$(ls lockstep-sim-*.case)
ends 2 'safety' "$planted" --plant fence_skipped --replay "$found" --shrink 0
ends 3 'no progress' "$planted" --plant retry_forgotten --seeds 1..200 --shrink 0 --jobs 2
ends 4 'broken invariant' "$planted" --plant old_lane_counted --seeds 1..200 --shrink 0 --jobs 2
exit "$failed"
