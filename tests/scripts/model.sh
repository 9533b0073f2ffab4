#!/usr/bin/env bash
# Models and routing functions from shared objects: made with the lines of examples/model, under live MPI programs, in ulfm_info
# and in the simulator; what cannot be used is refused before a rank starts.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
ulfmrun=$stage/bin/ulfmrun
mpi=$stage/share/ulfm/examples/bin
[[ -x $mpi/trapezoid ]] || exit 77
source=$ULFM_SOURCE
unset "${!ULFM_@}"
answer=9.000004291534424e\\+00

cp "$source"/examples/model/* .
ran 'make' 0 '' make PREFIX="$stage"
[[ -f bus.so && -f routing.so ]] || exit 1

over() {
    local what=$1 pattern=$2
    shift 2
    ran "$what" 0 "$pattern" "$ulfmrun" "$@"
}
over 'trapezoid' "$answer" --transport ./bus.so --topology single:4 -n 4 "$mpi/trapezoid"
over 'trapezoid, 16 ranks on 8 nodes' "$answer" --transport ./bus.so,width=1,frame=256 -n 16 "$mpi/trapezoid"
over 'halo' '' --transport ./bus.so --topology mesh:2x2 -n 4 "$mpi/halo"
# The programs of ./dev demo, checked against one process. The conformance tests run over this model, too.
for program in pi mm lu halo; do over "$program" 'check: ok' --transport ./bus.so -n 4 "$mpi/$program" --check; done
over 'a bad network' "$answer" --transport ./bus.so --fault 'drop=1e-2,reorder=1e-2,seed=7' -n 4 "$mpi/trapezoid"
mkdir -p elsewhere
ran 'a plain mpiexec' 0 "$answer" env ULFM_TRANSPORT=./bus.so "$stage/bin/mpiexec" -n 4 "$mpi/trapezoid"
over 'ranks in another folder' "$answer" --transport ./bus.so -wdir "$PWD/elsewhere" -n 4 "$mpi/trapezoid"
ran 'from the environment' 0 "$answer" env ULFM_TRANSPORT=./bus.so "$ulfmrun" -wdir "$PWD/elsewhere" -n 4 "$mpi/trapezoid"
ran 'statistics' 0 "$answer" env ULFM_STATS=1 "$ulfmrun" --transport ./bus.so -n 4 "$mpi/trapezoid"
grep -q 'stats bus: cycles [1-9].*present 0.*busy cycles [1-9]' out || { echo 'FAIL no counters' && failures=$((failures + 1)); }

ran 'what it is' 0 'example: a bus that all nodes share' "$stage/bin/ulfm_info" ./bus.so
ran 'its options' 0 'width=1..4096' "$stage/bin/ulfm_info" ./bus.so
ran 'simulated' 0 'bus.so over single:8' "$stage/bin/ulfm_sim" load -q --measure 2000 --transport ./bus.so -T single:8 -r 0.1
ran 'alone' 0 'all as the closed form says' "$stage/bin/ulfm_sim" zero --transport ./bus.so -T single:8
ran 'routed' 0 'mesh:4x4' "$stage/bin/ulfm_sim" load -q --measure 2000 --routing ./routing.so -T mesh:4x4 -r 0.1

refused() {
    local what=$1 pattern=$2
    shift 2
    ran "$what" 2 "$pattern" "$ulfmrun" "$@" -n 2 "$mpi/trapezoid"
}
refused 'no file' 'No such file' --transport ./none.so
refused 'a folder' 'is no file' --transport ./elsewhere
refused 'no shared object' 'cannot be loaded' --transport ./Makefile
refused 'no model in it' 'has no ulfm_model' --transport ./routing.so
refused 'no such option' 'there are: frame=64..65536, width=1..4096' --transport ./bus.so,widht=8
refused 'a bad value' 'from 1 to 4096' --transport ./bus.so,width=0
refused 'one node' 'a bus has two nodes' --transport ./bus.so --topology single:1
refused 'no durations' 'durations' --transport ./bus.so --time virtual
refused 'scheduled faults' 'transport bus has no links, switches and nodes that could fail' --transport ./bus.so --fault 'link 0-1 down at 1s'
sed 's/ULFM_MODEL({/ULFM_MODEL({.version = 99, /' bus.cpp >later.cpp
ran 'make a later one' 0 '' make PREFIX="$stage" later.so
refused 'a later interface' 'is for version 99' --transport ./later.so

finish
