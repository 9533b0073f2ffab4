#!/usr/bin/env bash
# Many more ranks than cores: a sum over all ranks and a ring of messages end well with 64 and with 128 ranks.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile many <<'C'
#include <mpi.h>
#include <math.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* The trapezoidal rule for 4 / (1 + x^2) from 0 to 1: each rank a share, rank 0 adds what it is sent. */
    const int n = 100000;
    const double h = 1.0 / n;
    double sum = 0;
    for (int i = rank; i < n; i += size) {
        const double a = i * h, b = (i + 1) * h;
        sum += h * (4 / (1 + a * a) + 4 / (1 + b * b)) / 2;
    }
    if (rank == 0) {
        for (int i = 1; i < size; ++i) {
            double other;
            MPI_Recv(&other, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += other;
        }
    } else {
        MPI_Send(&sum, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    }
    double again = 0, share = rank == 0 ? sum : 0;
    MPI_Allreduce(&share, &again, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    int token = 0;
    if (rank == 0) {
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT, size - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (fabs(again - 3.14159265358979) < 1e-8 && token == size - 1) printf("pi from %d ranks\n", size);
    } else {
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ++token;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
C
for ranks in 64 128; do
    timeout -k 10 "$patience" "$mpiexec" -n "$ranks" "$work/many" >"$work/out" 2>&1 || fail "$ranks ranks: exit code $?"
    grep -qx "pi from $ranks ranks" "$work/out" || fail "$ranks ranks: wrong result"
done
echo "64 and 128 ranks end well"
