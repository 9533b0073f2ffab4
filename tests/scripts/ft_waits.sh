#!/usr/bin/env bash
# With --ft: what waits for a rank that has died, or for one that has heard of a death and goes on to MPIX_Comm_shrink, ends
# with MPIX_ERR_PROC_FAILED: requests of one-sided operations, MPI_Win_test, collectives, MPI_Waitany, receives of what a
# dead rank had announced.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile ft_waits <"$(dirname "${BASH_SOURCE[0]}")/ft_waits.c"

# ends RANKS HOW OPTION...: all but one are left.
ends() { goes_on ft_waits "$1" $(($1 - 1)) "${@:2}"; }

for how in put get accumulate get_accumulate got test; do
    ends 2 "$how"
    ends 3 "$how" --transport tcp
done
for how in barrier allreduce bcast dup ibarrier split freed any; do
    ends 4 "$how"
    ends 6 "$how" --transport tcp
done
ends 4 barrier --transport xswitch
for transport in direct tcp xswitch; do ends 3 announced --transport $transport; done
# Votes that take several frames.
ULFM_FRAME=256 ends 9 barrier --transport tcp
echo 'what waits for the dead ends, and what waits for those who have heard of them'
