#!/usr/bin/env bash
# Jobs whose hosts do not call back: launchers that end, wait or are killed. The launchers are scripts that run on this host
# what ssh would run on another one. And a folder of the installation whose name means something to a shell.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1

launcher() {
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
mkdir bin
launcher bin/ssh 'exit 0'
launcher waits 'echo $$ >>pids; exec sleep 600'
# shellcheck disable=SC2016 # the launcher's own arguments
launcher runs 'while [ "$1" != elsewhere ]; do shift; done; shift; exec sh -c "$*"'
# shellcheck disable=SC2016
launcher leaves 'while [ "$1" != elsewhere ]; do shift; done; shift; setsid sh -c "sleep 2; $*" & exit 0'
# A proxy that can tell who it is, and then no longer; and one that cannot start processes.
for few in 6 8; do
    launcher "few_$few" "while [ \"\$1\" != elsewhere ]; do shift; done; shift; ulimit -n $few; exec sh -c \"\$*\""
done
mpiexec=$stage/bin/mpiexec

# says STATUS PATTERN COMMAND...
says() {
    local want=$1 pattern=$2 status=0
    shift 2
    timeout -k 5 "$patience" "$@" </dev/null >"$work/out" 2>&1 || status=$?
    ((status == want)) || fail "$*: exit status $status, wanted $want"
    grep -q -e "$pattern" "$work/out" || fail "$*: no line like '$pattern'"
    echo "ok   ${*##*/}"
}
says 1 'host elsewhere: ssh ended with status 0 before the job could begin there; ulfm_doctor somebody@elsewhere looks why' \
    env PATH="$work/bin:$PATH" "$mpiexec" -f <(echo 'elsewhere user=somebody') -n 1 echo ran
says 0 '^ran$' "$mpiexec" -launcher-exec "$work/leaves" -hosts elsewhere -n 1 echo ran
for few in 6 8; do
    says 1 "^mpiexec: rank 0 and 1 more on elsewhere did not begin, as far as is known: the launcher's proxy there has ended" \
        "$mpiexec" -launcher-exec "$work/few_$few" -hosts elsewhere -n 2 echo ran
    ! grep -q 'assert' "$work/out" || fail "functions of the launcher are shown"
done
# A proxy beside mpiexec that ends before it has spoken, and one that does so while another host's is there.
mkdir fake fake/bin
ln -s "$stage/lib" fake/lib
cp "$stage/bin/mpiexec" fake/bin
launcher fake/bin/hydra_pmi_proxy 'exit 0'
says 1 "^mpiexec: rank 0 and 1 more on $(hostname) did not begin, as far as is known: the launcher's proxy there has ended" fake/bin/mpiexec -n 2 echo ran
launcher real "while [ \"\$1\" != elsewhere ]; do shift; done; shift; exec sh -c \"\$(printf %s \"\$*\" | sed 's|$work/fake/bin|$stage/bin|g')\""
launcher fake/bin/hydra_pmi_proxy 'while [ ! -e there ]; do sleep 0.1; done; exit 0'
says 1 "^mpiexec: rank 1 on $(hostname) did not begin, as far as is known: the launcher's proxy there has ended" \
    fake/bin/mpiexec -launcher-exec "$work/real" -hosts "elsewhere,$(hostname)" -n 2 sh -c 'echo >there; sleep 600'
! grep -q 'signal' "$work/out" || fail "mpiexec ends by a fault"

# gone PID: within the test's patience.
gone() {
    local until=$((SECONDS + 60))
    while kill -0 "$1" 2>/dev/null; do
        ((SECONDS < until)) || fail "process $1 is left behind"
        sleep 0.05
    done
}

# ended HOSTS SIGNAL STATUS: the launcher has begun, and no host has called.
ended() {
    local status=0 began=$SECONDS job
    rm -f pids
    "$mpiexec" -launcher-exec "$work/waits" -hosts "$1" -n 2 sleep 600 </dev/null >"$work/out" 2>&1 &
    job=$!
    until [[ -s pids ]]; do
        ((SECONDS - began < 60)) || fail "no launcher"
        sleep 0.05
    done
    kill -s "$2" "$job"
    wait "$job" || status=$?
    ((status == $3)) || fail "$2, hosts $1: exit status $status, wanted $3"
    [[ $2 == KILL ]] || grep -q "ended by signal .* before host elsewhere had called back" "$work/out" || fail "$2: without a word"
    gone "$(head -n 1 pids)"
    echo "ok   $2 to a job of $1"
}
for hosts in elsewhere "$(hostname),elsewhere"; do
    ended "$hosts" TERM 143
    ended "$hosts" QUIT 131
    ended "$hosts" KILL 137
done

odd="my stage's \$x \`touch ran_by_the_shell\` !é"
ln -s "$stage" "$odd"
says 0 '^ran$' "$odd/bin/mpiexec" -launcher-exec "$work/runs" -hosts elsewhere -n 1 echo ran
[[ ! -e ran_by_the_shell ]] || fail "the other host's shell ran a part of the path"
for shell in dash tcsh fish; do
    command -v "$shell" >/dev/null || continue
    launcher "runs_$shell" "while [ \"\$1\" != elsewhere ]; do shift; done; shift; exec $shell -c \"\$*\""
    says 0 '^ran$' "$odd/bin/mpiexec" -launcher-exec "$work/runs_$shell" -hosts elsewhere -n 1 echo ran
done

cat >abort.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Abort(MPI_COMM_WORLD, 256);
    return 0;
}
C
"$mpicc" abort.c -o abort || fail "mpicc cannot compile abort.c"
says 1 'MPI_Abort' "$mpiexec" -n 2 ./abort
cat >plain.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
C
"$mpicc" plain.c -o plain || fail "mpicc cannot compile plain.c"
says 15 'MPI_Init: another program has been this rank of the job and has left it' "$mpiexec" -n 1 sh -c './plain; ./plain'
PMI_FD=77 says 15 'PMI_FD is 77, which is no connection to a launcher' ./plain

# What hwloc's plugins load is not loaded for who asks nothing of the topology.
LD_DEBUG=files timeout "$patience" "$mpiexec" -n 1 ./plain >/dev/null 2>"$work/out" || fail "plain fails"
grep -q 'libmpi' "$work/out" || fail "no list of libraries"
! grep -q 'hwloc_[a-z]*\.so\|libX11' "$work/out" || fail "MPI_Init loads plugins of hwloc"
