#!/usr/bin/env bash
# With --ft: threads that shrink two communicators at once, and calls that end what has failed: MPI_Comm_disconnect of a
# revoked communicator, MPI_Buffer_detach and MPI_Cancel of sends to the dead, groups with a dead member.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile ft_ends <"$(dirname "${BASH_SOURCE[0]}")/ft_ends.c"

ends() { goes_on ft_ends "$@"; }

for how in threads order alone idup cancel_revoked disconnect; do
    ends 3 3 $how
    ends 4 4 $how --transport tcp
done
for how in threads_dead disconnect_dead detach cancel cancel_known cancel_late groups; do
    ends 4 3 $how
    ends 4 3 $how --transport tcp
done
ends 4 3 threads_dead --transport xswitch
echo 'what has failed is ended, and two threads shrink at once'
