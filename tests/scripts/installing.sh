#!/usr/bin/env bash
# What ./dev says about places: a tree that was moved or copied is noticed and built anew, install and uninstall refuse what is
# no place, uninstall takes away what was installed and nothing else, and cmake --install alone says that it leaves MPI out.
set -uo pipefail
source=${ULFM_SOURCE:?source folder} build=${ULFM_BUILD:?build folder}
# shellcheck source=counting.bash
. "$(dirname "${BASH_SOURCE[0]}")/counting.bash"
cd "$scratch" || exit 1
unset "${!ULFM_@}"
export ULFM_NO_PACKAGES=1

# says CODE PATTERN COMMAND...: ends with that code, and has such a line.
says() {
    local want=$1 pattern=$2 code=0
    shift 2
    timeout 120 "$@" </dev/null >out 2>&1 || code=$?
    ((code == want)) || fail "$*: status $code, wanted $want: $(tail -n 2 out)"
    grep -qE -- "$pattern" out || fail "$*: no line like '$pattern': $(tail -n 2 out)"
}

# A tree whose cache names another folder. The cmake here builds nothing: what comes before it is looked at.
mkdir -p tree/build/release tree/build/stage elsewhere programs
cp "$source/dev" tree/
mkdir -p tree/netmod/mpich
printf '#!/bin/sh\nexit 0\n' >tree/netmod/mpich/build
printf '#!/bin/sh\nexit 1\n' >programs/cmake
chmod +x tree/netmod/mpich/build programs/cmake
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$scratch/elsewhere" >tree/build/release/CMakeCache.txt
PATH=$scratch/programs:$PATH says 1 "this tree was moved or copied from $scratch/elsewhere: building anew" tree/dev setup
[[ ! -e tree/build/release && ! -e tree/build/stage ]] || fail "what was built at the other place is still there"
mkdir -p tree/build/release
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$scratch/tree" >tree/build/release/CMakeCache.txt
PATH=$scratch/programs:$PATH says 1 'failed after' tree/dev setup
! grep -q 'moved or copied' out || fail "a tree that stayed where it was is taken for a moved one"
[[ -e tree/build/release/CMakeCache.txt ]] || fail "the build of a tree that stayed where it was is gone"

says 1 'an absolute PREFIX is needed' "$source/dev" install
says 1 'an absolute PREFIX is needed' "$source/dev" install folder
says 1 'an absolute PREFIX is needed' "$source/dev" uninstall one two
says 1 'has no share/ulfm/installed.files' "$source/dev" uninstall "$scratch/elsewhere"

# Uninstall takes what its list names, folders that get empty, and nothing else.
mkdir -p prefix/bin prefix/share/ulfm prefix/lib/ulfm
touch prefix/bin/ulfmrun prefix/bin/theirs prefix/lib/ulfm/a
printf 'bin/ulfmrun\nlib/ulfm/a\n' >prefix/share/ulfm/installed.files
says 0 "uninstalled from $scratch/prefix" "$source/dev" uninstall "$scratch/prefix"
[[ $(cd prefix && find . | LC_ALL=C sort | tr '\n' ' ') == '. ./bin ./bin/theirs ' ]] || fail "uninstall leaves $(find prefix)"

says 0 'ULFM: MPI is not among these files; ./dev install PREFIX installs it too' cmake --install "$build" --prefix "$scratch/alone"
[[ -x alone/bin/ulfm_info && ! -e alone/bin/mpicc ]] || fail "cmake --install: $(ls alone/bin)"
says 0 'ulfm_info' alone/bin/ulfm_info --version
mv alone moved
says 0 'ulfm_info' moved/bin/ulfm_info --version
echo "installing: $failures failures"
exit $((failures > 0))
