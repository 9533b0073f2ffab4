#!/usr/bin/env bash
# `use mpi_f08` says that sections of arrays are buffers: those that are not contiguous give right results in every kind of
# call, or an error with a sentence.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
command -v gfortran >/dev/null || { echo "skipped: no gfortran" && exit 77; }
[[ -x $stage/bin/mpifort ]] || { echo "skipped: no mpifort in $stage/bin" && exit 77; }
"$stage/bin/mpifort" -O1 -J "$work" "$(dirname "${BASH_SOURCE[0]}")/sections.f90" -o "$work/sections" ||
    fail "mpifort cannot compile sections.f90"
export SECTIONS_DIRECTORY=$work

# right RANKS OPTIONS...
right() { says_right sections "sections, $*" -n "$1" "${@:2}" "$work/sections"; }
for ranks in 1 3 4; do
    right "$ranks" --transport direct
done
right 3 --transport tcp

# An error that nobody handles says what was wrong.
cat >"$work/refused.f90" <<'END'
program refused
 use mpi_f08
 integer :: a(40), b(20)
 type(MPI_Request) :: q
 call MPI_Init()
 a = 1
 call MPI_Iallreduce(a(1::2), b, 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, q)
 print *, 'not refused'
end program
END
"$stage/bin/mpifort" "$work/refused.f90" -o "$work/refused" || fail "mpifort cannot compile refused.f90"
status=0
timeout -k 5 "$patience" "$stage/bin/ulfmrun" -n 1 "$work/refused" >"$work/out" 2>&1 || status=$?
((status != 0 && status != 124)) || fail "a refused call: exit status $status"
tr -s ' \n' ' ' <"$work/out" | grep -q "cannot be a buffer of a nonblocking or persistent reduction" ||
    fail "a refused call says nothing"
echo "ok   refused"
