#!/usr/bin/env bash
# Kills what moves an emulated network at random moments: the engine process, or a rank, which may hold the engine. The job
# ends, soon, and nothing is left. ULFM_KILLS says how often (10).
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
[[ -x $stage/bin/mpicc ]] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
times=${ULFM_KILLS:-10}
unset "${!ULFM_@}"
failures=0

# Runs until it is killed; its processes carry the mark of this run.
cat >busy.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    int x = 1, y, i;
    MPI_Init(&argc, &argv);
    for (i = 0; i < 1000000000; i++)
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
program=busy-$$
"$stage/bin/mpicc" busy.c -o "$program" || exit 1

fail() {
    echo "FAIL $1"
    tail -n 5 err
    failures=$((failures + 1))
}

engines() { pgrep -x ulfm-engine || true; }

# one_kill ENGINE: starts a job, kills the engine process or a rank, waits for the end.
one_kill() {
    local engine=$1 before job victim='' code=0 turn
    before=$(engines)
    ULFM_ENGINE=$engine timeout 60 "$stage/bin/ulfmrun" --transport xswitch -n 3 "./$program" >out 2>err </dev/null &
    job=$!
    for ((turn = 0; turn < 1000; turn++)); do
        if (($(pgrep -fc "^\./$program" || true) >= 3)); then break; fi
        kill -0 $job 2>/dev/null || break
        sleep 0.01
    done
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"  # any moment will do
    if [[ $engine == process ]]; then
        victim=$(comm -13 <(sort <<<"$before") <(engines | sort) | head -n 1)
    else
        victim=$(pgrep -f "^\./$program" | sed -n "$((RANDOM % 3 + 1))p")
    fi
    [[ -n $victim ]] || { fail "$engine: nothing to kill" && kill $job && wait $job; return; }
    kill -9 "$victim"
    wait $job || code=$?
    if ((code == 0 || code == 124)); then fail "$engine: exit code $code after the kill"; fi
    if [[ $engine == process ]] && ! grep -q "process $victim died while it moved the xswitch" err; then
        fail "$engine: nobody said that process $victim died"
    fi
}

for ((n = 0; n < times; n++)); do
    one_kill inline
    one_kill process
done
if pgrep -f "^\./$program" >/dev/null; then fail "processes are left"; fi
((failures == 0)) && echo "ok   $times kills of each kind"
((failures == 0)) || exit 1
