#!/usr/bin/env bash
# The control channel under MPI programs: unauthenticated peers at every port while a job runs, ranks that are killed, aborts, spawned
# processes, jobs that connect to each other, and traces.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=fabric_common.bash
. "$here/fabric_common.bash"
command -v python3 >/dev/null && [[ -x $stage/bin/mpicc ]] || exit 77

cat >busy.c <<'C'
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Exchanges and sums up until the file FOLDER/stop is there; every value is checked. `kill`: waits to be killed. */
static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}
int main(int argc, char **argv)
{
    int rank, size, stop = 0, before = 0, wrong = 0, all_wrong, leaks, all_leaks;
    long round = 0;
    char name[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (; !stop; round++) {
        long mine[2] = { rank + round, rank }, sum[2];
        int peer;
        MPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum[0] != size * (size - 1) / 2 + size * round;
        for (peer = 0; peer < size; peer++) { /* everybody to everybody */
            long got = -1;
            MPI_Sendrecv(mine, 1, MPI_LONG, (rank + peer) % size, 0, &got, 1, MPI_LONG, (rank - peer + size) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += got != (rank - peer + size) % size + round;
        }
        if (round == 0) {
            FILE *f;
            before = descriptors();
            snprintf(name, sizeof name, "%s/pid.%d", argv[1], rank);
            f = fopen(name, "w");
            fprintf(f, "%d\n", (int)getpid());
            fclose(f);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                snprintf(name, sizeof name, "%s/ready", argv[1]);
                fclose(fopen(name, "w"));
            }
            if (argc > 2 && strcmp(argv[2], "abort") == 0 && rank == size - 1)
                MPI_Abort(MPI_COMM_WORLD, 7);
        }
        snprintf(name, sizeof name, "%s/stop", argv[1]);
        stop = rank == 0 && access(name, F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(200);
    }
    leaks = descriptors() - before;
    if (leaks > 0 && leaks <= 2 * (size - 1)) /* control connections, made beside the data: up to two to each peer */
        leaks = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&leaks, &all_leaks, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d, descriptors more %d\n", all_wrong, all_leaks);
    MPI_Finalize();
    return 0;
}
C
cat >spawn.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* alone: spawns two; `accept FILE`, `connect FILE`: two jobs that meet. */
static void exchange(MPI_Comm other, int value, const char *who)
{
    int got = -1;
    MPI_Sendrecv(&value, 1, MPI_INT, 0, 5, &got, 1, MPI_INT, 0, 5, other, MPI_STATUS_IGNORE);
    printf("%s got %d\n", who, got);
    fflush(stdout);
}
int main(int argc, char **argv)
{
    MPI_Comm other;
    char port[MPI_MAX_PORT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            exchange(other, 2, "child");
    } else if (argc == 1) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE);
        exchange(other, 1, "parent");
    } else if (strcmp(argv[1], "accept") == 0) {
        FILE *f;
        char name[4096];
        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(name, sizeof name, "%s.new", argv[2]);
        f = fopen(name, "w");
        fputs(port, f);
        fclose(f);
        rename(name, argv[2]);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        exchange(other, 3, "acceptor");
    } else {
        FILE *f;
        while (!(f = fopen(argv[2], "r")))
            ;
        if (!fgets(port, sizeof port, f))
            return 1;
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        exchange(other, 4, "connector");
    }
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
C
for program in busy spawn; do
    "$stage/bin/mpicc" -O1 "$program.c" -o "$program" || exit 1
done

# begin NAME OPTIONS...: starts ./busy in the background, and returns when every rank has talked to every other one.
begin() {
    folder=$scratch/run
    rm -rf "$folder"
    mkdir "$folder"
    timeout 250 "$run" "$@" </dev/null >out 2>err &
    job=$!
    until [[ -e $folder/ready ]]; do
        kill -0 "$job" 2>/dev/null || return 1
        sleep 0.05
    done
}
# total WORD: the sum of the numbers behind it in the statistics.
total() { grep -o "$1 [0-9]*" err | awk '{ sum += $NF } END { print sum + 0 }'; }

# unauthenticated NAME RANKS COUNT OPTIONS...
unauthenticated() {
    local name=$1 ranks=$2 count=$3 code=0 said lines
    shift 3
    if ! ULFM_STATS=1 ULFM_CONTROL=tcp begin "$@" -n "$ranks" ./busy "$scratch/run"; then
        wait "$job"
        fail "$name" "the job did not start"
        return
    fi
    mapfile -t pids < <(cat "$folder"/pid.*)
    said=$(timeout 200 python3 "$here/unauthenticated.py" "$count" "${pids[@]}") || fail "$name" "unauthenticated peers: $said"
    touch "$folder/stop"
    wait "$job" || code=$?
    lines=$(grep -c "an unauthenticated connection" err)
    if ((code != 0)); then
        fail "$name" "exit code $code"
    elif ! grep -Eq '^wrong 0, descriptors more (0|-[0-9]+)$' out; then
        fail "$name" "another result"
    elif [[ $said != *" to $ranks ports, 0 answered" ]]; then
        fail "$name" "$said"
    elif (($(total 'unauthenticated connections refused') != count)); then
        fail "$name" "$count unauthenticated peers, counted $(total 'unauthenticated connections refused')"
    elif ((lines != ranks)); then
        fail "$name" "$lines lines about unauthenticated peers for $ranks processes"
    else
        echo "ok   $name: $said"
    fi
}
unauthenticated "unauthenticated peers, pcie" 4 10000 --transport pcie --topology boards:2x2
# The segment of a collective is a descriptor more, which is nobody else's doing.
ULFM_COLLECTIVES=off unauthenticated "unauthenticated peers, direct" 2 1000

# Without a control channel nobody listens.
if begin -n 2 ./busy "$scratch/run"; then
    mapfile -t pids < <(cat "$folder"/pid.*)
    python3 "$here/unauthenticated.py" 1 "${pids[@]}" >/dev/null 2>&1 && fail "no channel" "a rank listens"
    touch "$folder/stop"
    wait "$job" && echo "ok   no channel unless asked for"
fi

for control in tcp unix; do
    for transport in direct pcie; do
        ULFM_STATS=1 ULFM_CONTROL=$control over "$transport, $control" "$answer" --transport $transport -n 4 \
            "$programs/trapezoid"
        (($(grep -c "control $control: connections" err) == 4)) || fail "$transport, $control" "no statistics"
        made=$(grep -o 'connections [0-9]* made [0-9]* accepted' err | awk '{ m += $2; a += $4 } END { print (m > 2 && m == a) }')
        [[ $control$transport != unixdirect ]] || (($(total descriptors) > 0)) || fail "direct, unix" "no descriptors passed"
        [[ $made == 1 ]] || fail "$transport, $control" "made and accepted do not agree"
    done
    ULFM_CONTROL=$control over "spawned processes, $control" 'parent got 2' -n 1 ./spawn
    rm -f port
    ULFM_CONTROL=$control timeout 100 "$run" -n 1 ./spawn accept "$scratch/port" >accepted 2>&1 &
    job=$!
    ULFM_CONTROL=$control over "a job connects to another, $control" 'connector got 3' -n 1 ./spawn connect "$scratch/port"
    wait "$job" && grep -q 'acceptor got 4' accepted || fail "a job accepts another, $control" "$(cat accepted)"

    # Killed, and given up: the job ends.
    if ULFM_CONTROL=$control begin --transport pcie -n 4 ./busy "$scratch/run"; then
        kill -9 "$(<"$folder/pid.3")"
        wait "$job" && fail "kill, $control" "the job says that all went well"
        echo "ok   kill, $control"
    else
        fail "kill, $control" "the job did not start"
    fi
    ULFM_CONTROL=$control timeout 100 "$run" --transport pcie -n 4 ./busy "$scratch/run" abort >out 2>err
    code=$?
    ((code == 7)) && echo "ok   abort, $control" || fail "abort, $control" "exit code $code"
done

over "all of a large job" "$answer" --transport pcie --topology boards:8x16 -n 128 "$programs/trapezoid"
# Of a rank that fails in MPI_Init mpiexec may lose the last words.
if ULFM_CONTROL=udp "$stage/bin/ulfm_info" >out 2>err || ! grep -q 'ULFM_CONTROL="udp": needs one of auto|tcp|unix' err; then
    fail "no such channel" "no line that says so"
fi

# ---- traces -----------------------------------------------------------------------------------------------------------

ULFM_STATS=1 over "trace" "$answer" --trace "$scratch/trace" --transport pcie -n 3 "$programs/trapezoid"
cat >check.py <<'P'
import json, sys
trace = json.load(open(sys.argv[1]))
assert trace["otherData"]["lost"] == 0
for rank in range(3):
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == rank and e["cat"] != "wait"]
    assert all(e["ts"] > 0 and e["args"]["peer"] > 0 for e in events), "events without a peer"
    control = [e for e in events if e["cat"] == "control"]
    data = [e for e in events if e["cat"] == "data"]
    assert {e["args"]["over"] for e in control} == {"tcp"} and {e["args"]["over"] for e in data} == {"pcie"}
    assert {e["name"] for e in data} >= {"message sent", "message arrived"}, {e["name"] for e in data}
    assert {e["name"] for e in control} & {"connection sent", "connection arrived"}, "no connection"
    assert all(e["args"]["peer_rank"] in range(3) for e in data), "a peer without a rank"
P
if said=$(python3 check.py "$scratch/trace" 2>&1); then echo "ok   what traces say"; else fail "what traces say" "$said"; fi
cat >name.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Open_port(MPI_INFO_NULL, name);
    puts(name);
    MPI_Close_port(name);
    MPI_Finalize();
    return 0;
}
C
name=$("$stage/bin/mpicc" name.c -o name && ULFM_CONTROL=tcp timeout 60 "$stage/bin/ulfmrun" -n 1 ./name 2>&1)
if [[ $name == *direct:* && $name != *+* ]]; then echo "ok   a port name holds no secret"; else fail "a port name" "$name"; fi

: >others && chmod 666 others && ln -s others "$scratch/linked"
refused "a trace over a link" 'no file of yours' --trace "$scratch/linked" -n 2 "$programs/trapezoid"
[[ $(stat -c %a "$scratch"/trace) == 600 ]] && echo "ok   a trace is its user's" || fail "a trace's mode" "$(ls -l "$scratch"/trace)"

refused "a trace that cannot be written" 'a folder that can be written is needed' --trace /nowhere/at/all -n 2 "$programs/trapezoid"

((failures == 0)) || exit 1
