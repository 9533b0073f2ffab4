#!/usr/bin/env bash
# With --ft: MPIX_Comm_shrink of intercommunicators, of two groups of a job and of a job and what it has spawned.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile ft_inter <"$(dirname "${BASH_SOURCE[0]}")/ft_inter.c"

shrinks() { goes_on ft_inter "$@"; }

for transport in direct tcp; do
    shrinks 5 4 last --transport $transport
    shrinks 4 3 first --transport $transport
    shrinks 5 3 side --transport $transport
    shrinks 2 1 side --transport $transport
    shrinks 5 5 revoked --transport $transport
    shrinks 4 3 threads --transport $transport
    shrinks 6 2 rounds --transport $transport
    shrinks 2 2 spawned --transport $transport
done
shrinks 4 3 last --transport xswitch
echo 'intercommunicators shrink to the living of both groups'
