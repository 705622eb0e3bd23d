#!/usr/bin/env bash
# Installs a build into a temporary folder, moves it, and builds a consumer against it by find_package and by
# pkg-config; each must run. usage: check_install.sh BUILD_FOLDER SOURCE_FOLDER COMPILER
set -euo pipefail
build=$1
source=$2
compiler=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "check_install.sh: $*" >&2
    exit 1
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; fail "cannot install"; }
# An install can be moved: nothing in it names where it was made.
mv "$work/first" "$work/prefix"
prefix=$work/prefix
for name in include/lockstep/options.h share/lockstep/replica.sample.textproto share/doc/lockstep/LICENSE; do
    [ -f "$prefix/$name" ] || fail "$name is not installed"
done
if grep -rIlE "$work/first|$build|$source" "$prefix/lib" "$prefix/share"; then fail "these files name the build's folders"; fi
expected="applied: 5 bytes"
sample=$prefix/share/lockstep/replica.sample.textproto

echo "-- find_package"
cmake -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; fail "find_package(lockstep) fails"; }
cmake --build "$work/consumer"
# The last line: the replica logs before it.
said=$("$work/consumer/consumer" "$sample" "$work/data1" | tail -n 1)
[ "$said" = "$expected" ] || fail "the consumer by find_package said \"$said\", not \"$expected\""

if grep -q '^LOCKSTEP_RDMA:STRING=OFF$' "$build/CMakeCache.txt"; then
    echo "-- a config that asks for RDMA, in a build that has none"
    sed 's/^transport: auto$/transport: rdma/' "$sample" >"$work/rdma.textproto"
    cmp -s "$sample" "$work/rdma.textproto" && fail "the sample config has no line \"transport: auto\""
    if said=$("$work/consumer/consumer" "$work/rdma.textproto" "$work/data3" 2>&1); then
        fail "a replica over RDMA opens in a build that has none: $said"
    fi
    remedy="install libibverbs-dev and build again with -DLOCKSTEP_RDMA=ON"
    [[ $said == *"no RDMA: $remedy"* ]] || fail "the error does not name the remedy: $said"
fi

echo "-- pkg-config"
pc=$(find "$prefix" -name lockstep.pc -printf '%h')
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs lockstep)
# shellcheck disable=SC2086 # the flags are words
"$compiler" -std=c++20 "$source/tests/install/consumer/consumer.cc" -o "$work/by_pkg_config" $flags
libraries=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir lockstep)
said=$(LD_LIBRARY_PATH=$libraries "$work/by_pkg_config" "$sample" "$work/data2" | tail -n 1)
[ "$said" = "$expected" ] || fail "the consumer by pkg-config said \"$said\", not \"$expected\""
echo "-- both run"
