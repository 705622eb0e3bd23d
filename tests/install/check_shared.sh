#!/usr/bin/env bash
# The same as check_install.sh, for a shared library without RDMA and io_uring, built for this alone.
# usage: check_shared.sh BUILD_FOLDER SOURCE_FOLDER COMPILER
set -euo pipefail
build=$1/shared
source=$2
compiler=$3

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_UNITY_BUILD=ON -DBUILD_SHARED_LIBS=ON -DLOCKSTEP_RDMA=OFF \
    -DLOCKSTEP_URING=OFF -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_TOOLS=OFF
cmake --build "$build" -j "$(nproc)"
[ -f "$build/liblockstep.so" ] || { echo "check_shared.sh: there is no liblockstep.so" >&2; exit 1; }
if ldd "$build/liblockstep.so" | grep -E 'ibverbs|uring'; then
    echo "check_shared.sh: liblockstep.so needs a library that it is built without" >&2
    exit 1
fi
"$(dirname "$0")/check_install.sh" "$build" "$source" "$compiler"
