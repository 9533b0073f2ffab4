#!/usr/bin/env bash
# Kills the PC host of a job over boards, ulfm_hostd, at random moments, several times in each job: the job goes on and its
# results are right, or it ends soon with a sentence. With the keeper killed first it ends. Nothing is left. ULFM_KILLS
# says how many jobs of each kind (10).
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
[[ -x $stage/bin/mpicc ]] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
times=${ULFM_KILLS:-10}
unset "${!ULFM_@}"
failures=0 killed=0 survived=0 jobs=0

# Exchanges messages of all lengths until the file "stop" is there, and checks every byte's place.
cat >busy.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#define MOST 100000
static unsigned char out[MOST], in[MOST];
int main(int argc, char **argv)
{
    int rank, size, stop = 0;
    long i, n, sum, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (n = 0; !stop; n++) {
        int length = (int)((n * 7919) % MOST), to = (rank + 1) % size, from = (rank + size - 1) % size, got;
        MPI_Status status;
        for (i = 0; i < length; i++)
            out[i] = (unsigned char)(i * 31 + n + rank);
        MPI_Sendrecv(out, length, MPI_BYTE, to, 1, in, MOST, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        wrong += got != length;
        for (i = 0; i < length; i++)
            wrong += in[i] != (unsigned char)(i * 31 + n + from);
        if (n % 16 == 0)
            stop = rank == 0 && access(argv[1], F_OK) == 0;
        if (n % 16 == 0)
            MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Reduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("rounds %ld wrong %ld\n", n, sum);
    MPI_Finalize();
    return 0;
}
C
program=boards-$$
"$stage/bin/mpicc" -O2 busy.c -o "$program" || exit 1

fail() {
    echo "FAIL $1"
    tail -n 5 err
    failures=$((failures + 1))
}

processes_named() { pgrep -x "$1" || true; }

# The keeper begins under the name of its program, and each host under the keeper's: who is who say their arguments, which name
# the process of the job, and the parent.

# a_keeper: the process that keeps the host of the job.
a_keeper() {
    local runner all one parent
    runner=$(pgrep -P "$job") || return
    all=$(pgrep -f "ulfm_hostd [^ ]+ $runner [0-9]+\$") || return
    for one in $all; do
        parent=$(ps -o ppid= -p "$one" | tr -d ' ')
        [[ $(ps -o comm= -p "$one") == hostd-keeper && -n $parent ]] && ! grep -qx "$parent" <<<"$all" && echo "$one"
    done
}

# a_host KEEPER BEFORE: the keeper's host when it is not the one before.
a_host() { pgrep -P "$1" -x ulfm_hostd | grep -vx "$2"; }

# new COMMAND...: what the command prints, once it prints something; waits for up to 5 s.
new() {
    local found turn
    for ((turn = 0; turn < 500; turn++)); do
        found=$("$@")
        if [[ -n $found ]]; then
            echo "$found"
            return
        fi
        sleep 0.01
    done
    return 1
}

start_job() {  # MODE
    rm -f stop
    hosts_before=$(processes_named ulfm_hostd)
    ULFM_ENGINE=process ULFM_STATS=1 timeout 90 "$stage/bin/ulfmrun" --transport "pcie,mode=$1" --topology boards:4x2 -n 4 \
        "./$program" "$scratch/stop" >out 2>err </dev/null &
    job=$!
    keeper=$(new a_keeper) && host=$(new a_host "$keeper" none) && return
    fail "$1: no ulfm_hostd"
    kill $job
    wait $job
    return 1
}

any_moment() { sleep "0.$((RANDOM % 4))$((RANDOM % 10))$((RANDOM % 10))"; }

# killed_hosts MODE: three hosts of a job, one after the other.
killed_hosts() {
    local mode=$1 code=0 n here=0
    start_job "$mode" || return
    for n in 1 2 3; do
        any_moment
        kill -9 "$host" 2>/dev/null || break
        here=$((here + 1))
        host=$(new a_host "$keeper" "$host") || break
    done
    any_moment
    touch stop
    local since=$SECONDS
    wait $job || code=$?
    jobs=$((jobs + 1)) killed=$((killed + here))
    if ((code == 0)); then
        grep -q '^rounds [1-9][0-9]* wrong 0$' out || fail "$mode: wrong results: $(cat out)"
        grep -q 'which do not balance' err && fail "$mode: the totals do not balance"
        survived=$((survived + here))
    else
        ((code == 124)) && fail "$mode: the job hangs after a kill"
        ((SECONDS - since <= 12)) || fail "$mode: the job took $((SECONDS - since)) s to end"
        grep -q 'died while it moved the pcie' err || fail "$mode: exit code $code and no sentence"
    fi
}

# killed_keeper: nobody starts the host anew, and the job says so.
killed_keeper() {
    local code=0 since
    start_job store || return
    any_moment
    kill -9 "$keeper" "$host"
    since=$SECONDS
    wait $job || code=$?
    if ((code == 0 || code == 124)); then fail "keeper: exit code $code"; fi
    ((SECONDS - since <= 10)) || fail "keeper: the job took $((SECONDS - since)) s to end"
    grep -q 'died while it moved the pcie' err || fail "keeper: nobody said that the host died"
}

for ((n = 0; n < times; n++)); do
    killed_hosts store
    killed_hosts cut-through
    killed_keeper
done
for ((turn = 0; turn < 300; turn++)); do  # the last host notices the end of its job when it has nothing to do
    pgrep -f "^\./$program" >/dev/null || [[ $(processes_named ulfm_hostd) != "$hosts_before" ]] || break
    sleep 0.01
done
if pgrep -f "^\./$program" >/dev/null; then fail "processes are left"; fi
echo "     $killed hosts killed in $jobs jobs, $survived survived"
((killed > 0 && survived * 2 >= killed)) || fail "fewer than half of the kills were survived"
((failures == 0)) && echo "ok   $times jobs of each kind"
((failures == 0)) || exit 1
