#!/usr/bin/env bash
# MPI and NX/2 programs over the emulated cube of Direct-Connect routers: the same results on every cube, with a bad
# network, with links that fail, and at the machine's pace; what cannot be is told.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
ulfmrun=$stage/bin/ulfmrun nxhost=$stage/bin/nxhost
mpi=$stage/share/ulfm/examples/bin
[[ -x $mpi/trapezoid ]] || exit 77
source=$ULFM_SOURCE
unset "${!ULFM_@}"
answer=9.000004291534424e\\+00
bad_network='drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=7'

over() {
    local what=$1 pattern=$2
    shift 2
    ran "$what" 0 "$pattern" "$ulfmrun" "$@"
}
for cube in 0 1 2 3 4; do
    for n in 4 16; do
        over "trapezoid, cube:$cube, $n" "$answer" --transport dcm --topology "cube:$cube" -n "$n" "$mpi/trapezoid"
    done
    over "halo, cube:$cube" '' --transport dcm --topology "cube:$cube" -n 4 "$mpi/halo"
    over "trapezoid, cube:$cube, bad network" "$answer" --transport dcm --topology "cube:$cube" --fault "$bad_network" \
        -n 4 "$mpi/trapezoid"
done
over 'the cube of 128 nodes' "$answer" --transport dcm -n 16 "$mpi/trapezoid"
over 'halo, small frames' '' --transport dcm,frame=64 --topology cube:2 -n 4 "$mpi/halo"
ran 'the engine as a process' 0 "$answer" env ULFM_ENGINE=process "$ulfmrun" --transport dcm -n 8 "$mpi/trapezoid"
over 'a link that comes back' "$answer" --transport dcm --topology cube:1 --fault 'link 0-1 down at 0s for 1s' -n 2 \
    "$mpi/trapezoid"
ran 'a link that does not' 1 'has acknowledged nothing for 1.0 s and is given up' \
    env ULFM_GIVE_UP=1s "$ulfmrun" --transport dcm --topology cube:1 --fault 'link 0-1 down at 0s' -n 2 "$mpi/trapezoid"

ran statistics 0 "$answer" env ULFM_STATS=1 "$ulfmrun" --transport dcm --topology cube:2 -n 4 "$mpi/trapezoid"
grep -q 'stats dcm: cycles [1-9].*words entered [1-9].*present 0$' out || { echo 'FAIL no balance' && failures=$((failures + 1)); }
grep -q 'stats dcm router [0-3] channel [01]: messages [1-9]' out || { echo 'FAIL no channel' && failures=$((failures + 1)); }
grep -q 'stats dcm router 0 sink: messages [1-9]' out || { echo 'FAIL no sink' && failures=$((failures + 1)); }

ran 'no such dimension' 2 '0 to 7 dimensions' "$ulfmrun" --transport dcm --topology cube:8 -n 2 "$mpi/trapezoid"
ran 'no cube' 2 'must be cube:0 to cube:7' "$ulfmrun" --transport dcm --topology mesh:2x2 -n 2 "$mpi/trapezoid"
ran 'too many to a node' 2 'at most 20' "$ulfmrun" --transport dcm --topology cube:0 -n 21 "$mpi/trapezoid"
ran 'no such pace' 2 'pace=ipsc2' "$ulfmrun" --transport dcm,pace=1988 -n 2 "$mpi/trapezoid"
ran 'no such link' 2 'there is no such link' \
    "$ulfmrun" --transport dcm --topology cube:2 --fault 'link 0-3 down at 1s' -n 2 "$mpi/trapezoid"

# At the machine's pace. How fast a loaded host is nobody knows: only that the program is not faster than the iPSC/2 was.
cat >pace.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size, i, bytes = atoi(argv[1]), rounds = atoi(argv[2]);
    char *data = calloc(1, (size_t)bytes + 1);
    double start;
    (void)argc;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    start = MPI_Wtime();
    for (i = 0; i < rounds; i++) {
        if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, size - 1, 1, MPI_COMM_WORLD);
        if (rank == size - 1) MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == size - 1) MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        if (rank == 0) MPI_Recv(data, bytes, MPI_BYTE, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        double us = (MPI_Wtime() - start) / (2 * rounds) * 1e6;
        printf("%s: %.1f us one way\n", us >= 300 && us * 2.8 >= bytes ? "paced" : "too fast", us);
    }
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 pace.c -o pace || exit 1
over 'pace, 0 bytes' '^paced' --transport dcm,pace=ipsc2 --topology cube:1 -n 2 ./pace 0 20
over 'pace, 0 bytes, five hops' '^paced' --transport dcm,pace=ipsc2 --topology cube:5 -n 32 ./pace 0 3
over 'pace, 200000 bytes' '^paced' --transport dcm,pace=ipsc2 --topology cube:1 -n 2 ./pace 200000 2
ran 'pace, the engine as a process' 0 '^paced' \
    env ULFM_ENGINE=process "$ulfmrun" --transport dcm,pace=ipsc2 --topology cube:1 -n 2 ./pace 0 20
over 'pace, all of them' "$answer" --transport dcm,pace=ipsc2 --topology cube:3 -n 8 "$mpi/trapezoid"
over 'pace, bad network' "$answer" --transport dcm,pace=ipsc2 --topology cube:2 --fault "$bad_network" -n 4 "$mpi/trapezoid"

# NX/2, as on the machine.
for program in calls errors handlers soak; do
    "$stage/bin/nxcc" -std=gnu11 -O1 -Wall -Wextra -Werror "$programs/$program.c" -o "$program" || exit 1
done
for n in 1 2 3 8 16; do
    for program in calls errors handlers; do
        over "$program, $n nodes" ': ok$' --transport dcm -n "$n" "./$program"
    done
    over "soak, $n nodes" ': ok$' --transport dcm -n "$n" ./soak 200 "$n"
done
for program in calls handlers; do over "$program, 64 nodes" ': ok$' --transport dcm -n 64 "./$program"; done
"$stage/bin/nxf77" -w "$programs/calls_f.f" -o calls_f || exit 1
for n in 2 8; do over "Fortran, $n nodes" ': ok' --transport dcm -n "$n" ./calls_f; done
over 'calls at the pace' ': ok$' --transport dcm,pace=ipsc2 --topology cube:2 -n 4 ./calls
ULFM_STAGE=$stage "$source/examples/nx2/build" "$scratch/bin" >log 2>&1 || { cat log && exit 1; }
for transport in dcm xswitch; do
    for program in ring broadcast matmul pi; do
        over "$program over $transport" '(: ok$|^pi: 3.14)' --transport "$transport" --topology cube:3 -n 8 "bin/$program"
    done
done
finish
