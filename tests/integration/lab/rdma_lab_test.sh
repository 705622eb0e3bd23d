#!/bin/bash
# Tests tools/rdma-lab, the first argument. Always in the virtual machine, also where there is an RDMA card.
set -u
lab=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
failures=0

if ! command -v qemu-system-x86_64 >/dev/null || ! command -v ibv_rc_pingpong >/dev/null; then
    echo "skipped: the lab needs qemu-system-x86 and ibverbs-utils, which tools/setup installs"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
chmod 755 "$work"
cache=${LOCKSTEP_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-lab}

check() {
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        failures=$((failures + 1))
        tail -n 20 "$work/err" | sed 's/^/    stderr: /'
    fi
}

# Runs the lab with its streams in files, and keeps its status.
run() {
    "$lab" --lab "$@" >"$work/out" 2>"$work/err"
    status=$?
}

status_is() { [[ $status == "$1" ]] || { echo "    status $status instead of $1"; return 1; }; }
says() { grep -q "$1" "$work/err"; }

cannot_start_without_qemu() {
    local tool
    mkdir "$work/tools"
    for tool in bash dirname realpath nproc uname; do ln -s "$(command -v "$tool")" "$work/tools/"; done
    PATH=$work/tools run true
    # /usr/sbin and /sbin are searched too; QEMU is not there.
    check "a missing QEMU is named, with the remedy" says 'qemu-system-x86_64 is missing: install it with'
    check "and the status is 125" status_is 125
}

refuses_bad_options() {
    run --timeout soon true
    check "a bad number is refused" says "takes a number"
    run --what true
    check "an unknown option is refused" says "not known"
    check "with status 125" status_is 125
}

passes_streams() {
    head -c 300000 /dev/urandom >"$work/in"
    cd "$here" || exit 1
    run --verbose --env "GREETING=good  day" bash -c 'cat; echo "$GREETING from $PWD" >&2; exit 3' <"$work/in"
    grep -o 'ready after.*' "$work/err"
    check "exit status 3" status_is 3
    check "binary input comes back as output" cmp "$work/in" "$work/out"
    check "stderr, environment and current folder" grep -qx "good  day from $here" "$work/err"
}

cuts_and_heals() {
    mkdir "$work/results"
    cd "$work" || exit 1
    run --out results "$here/links.sh" </dev/null
    check "exit status 0: links can be cut and healed" status_is 0
    check "ibv_devices shows three devices" test "$(grep -c rxe "$work/out")" -ge 3
    check "a file in --out is kept" grep -qx written "$work/results/kept"
    check "a file elsewhere is not" test ! -e "$work/lost"
}

# As another user, if this one may do so, and in a folder with spaces in its name.
runs_as_user() {
    local folder="$work/a folder, with spaces" identity=()
    mkdir -p "$folder/out" "$folder/cache"
    cp -a "$cache/." "$folder/cache/"
    if [[ $(id -u) == 0 ]]; then
        chown -R 65534:65534 "$folder"
        identity=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    cd "$folder" || exit 1
    HOME=$folder LOCKSTEP_LAB_CACHE=$folder/cache TMPDIR=$folder "${identity[@]}" \
        "$lab" --lab --out out sh -c 'pwd; kill -SEGV $$' </dev/null >"$work/out" 2>"$work/err"
    status=$?
    check "death by signal 11 is status 139" status_is 139
    check "a user works in a folder with spaces" grep -qx "$folder" "$work/out"
    check "the core dump is in --out" test -n "$(find out -name 'core.*' -size +0)"
    check "nothing is left behind" test -z "$(find . -maxdepth 1 -name 'rdma-lab.*')"
}

ends_in_time() {
    local start=$SECONDS
    run --timeout 8 sleep 1000 </dev/null
    check "a time-out is status 124" status_is 124
    check "and is said" says "time limit of 8 s is over"
    check "and comes in time" test $((SECONDS - start)) -lt 60
}

survives_a_panic() {
    run --fast bash -c 'ibv_devices; sync; echo c >/proc/sysrq-trigger' </dev/null
    check "a kernel panic is status 125" status_is 125
    check "and is said" says "kernel panicked"
    check "--fast has a single device" test "$(grep -c rxe "$work/out")" == 1
}

cannot_start_without_qemu
refuses_bad_options
passes_streams
cuts_and_heals
runs_as_user
ends_in_time
survives_a_panic
if ((failures)); then
    echo "$failures checks failed"
    exit 1
fi
