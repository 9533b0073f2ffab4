#!/usr/bin/env bash
# A group opened as a tree: each member gets every message whole, once and in order, over transports whose network does
# not copy messages, with a bad network, in virtual time, and when members on the way die or take long; the root sends few.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
ulfmrun=$stage/bin/ulfmrun
unset "${!ULFM_@}"
cat >"$work/tree.c" <<'C'
/* tree MESSAGES SLOW DIES: rank 0 sends so many down a tree to all others; rank SLOW sleeps first, rank DIES dies at the
 * tenth message. Each rank but 0 tells rank 0 at the end how many were as sent. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ulfm/ulfm.h>
enum { PORT = 7 };
static int must(int rc)
{
    if (rc < 0 && rc != ULFM_ERR_PEER_FAILED) fprintf(stderr, "tree: %s\n", ulfm_last_error()), exit(1);
    return rc;
}
static size_t size_of(int i) { return i % 10 == 9 ? 70000 : (size_t)(i * 37 % 3000 + 4); }
static void receive(ulfm_port port, ulfm_message *message)
{
    while (must(ulfm_wait(port, -1, message)) < 0); /* a death is told once */
}
int main(int argc, char **argv)
{
    ulfm_job job;
    ulfm_port port;
    ulfm_group group;
    ulfm_message message;
    void *buffer;
    const int messages = atoi(argv[1]), slow = atoi(argv[2]), dies = atoi(argv[3]);
    int good = 0, whole = 0;
    signal(SIGUSR1, SIG_IGN); /* with --ft mpiexec tells of a death so */
    must(ulfm_job_join(&job));
    const int rank = ulfm_job_rank(job), size = ulfm_job_size(job);
    const ulfm_port_options options = {.number = PORT};
    ulfm_address *others = calloc((size_t)size, sizeof *others);
    must(ulfm_port_open(job, &options, &port));
    must(ulfm_job_barrier(job));
    if (rank != 0) {
        int next = 0;
        if (rank == slow) sleep(1);
        while (next < messages) {
            receive(port, &message);
            const unsigned char *bytes = message.bytes;
            int number, right;
            memcpy(&number, bytes, sizeof number);
            right = number >= next && message.size == size_of(number);
            for (size_t i = 4; right && i < message.size; ++i) right = bytes[i] == (unsigned char)(i * 7 + (size_t)number);
            if (rank == dies && number == 10) _exit(0);
            next = number + 1;
            good += right;
            others[0] = message.source;
            must(ulfm_release(port, &message));
        }
        must(ulfm_compose(port, sizeof good, &buffer));
        memcpy(buffer, &good, sizeof good);
        must(ulfm_post(port, others[0]));
        must(ulfm_flush(port, -1));
    } else {
        for (int i = 1; i < size; ++i) must(ulfm_job_address(job, i, PORT, &others[i - 1]));
        must(ulfm_group_open_tree(port, others, size - 1, &group));
        for (int i = 0; i < messages; ++i) {
            int code = ulfm_compose(port, size_of(i), &buffer);
            while (code == ULFM_ERR_FULL) must(ulfm_flush(port, -1)), code = ulfm_compose(port, size_of(i), &buffer);
            must(code);
            for (size_t k = 0; k < size_of(i); ++k) ((unsigned char *)buffer)[k] = (unsigned char)(k * 7 + (size_t)i);
            memcpy(buffer, &i, sizeof i);
            must(ulfm_post_group(port, group));
            if (dies > 0 && i == 30) must(ulfm_flush(port, -1)), sleep(1); /* the death is known everywhere */
        }
        for (int i = 1; i < size - (dies > 0); ++i) {
            receive(port, &message);
            memcpy(&good, message.bytes, sizeof good);
            whole += good == messages;
            must(ulfm_release(port, &message));
        }
        printf("%d of %d have all\n", whole, size - 1);
    }
    free(others);
    fflush(stdout);
    if (dies > 0) _exit(0); /* no barrier among those who live */
    must(ulfm_job_barrier(job));
    must(ulfm_port_close(port));
    must(ulfm_job_leave(job));
    return 0;
}
C
"${CC:-gcc}" -std=c17 -O1 -Wall -Werror "$work/tree.c" -o "$work/tree" -I"$stage/include" -L"$stage/lib" -lulfm -Wl,-rpath,"$stage/lib"

# all RANKS PATTERN OPTIONS... -- ARGUMENTS...
all() {
    local ranks=$1 pattern=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    ULFM_STATS=1 timeout "$patience" "$ulfmrun" "${options[@]}" -n "$ranks" "$work/tree" "$@" >"$work/out" 2>"$work/stats" ||
        { cat "$work/stats" >>"$work/out" && fail "$ranks ranks, ${options[*]}, $*: exit status $?"; }
    grep -qx "$pattern" "$work/out" || fail "$ranks ranks, ${options[*]}, $*: not all have all"
}
# sent RANK: frames or messages that it has sent to one member of a group
sent() { sed -nE "s/.* rank $1 port 7 multicast: .* ([0-9]+) one by one/\1/p" "$work/stats"; }

for network in 'xswitch --topology mesh:4x4' 'dcm --topology cube:3' pcie ideal ofi; do
    read -ra options <<<"$network"
    all 8 '7 of 7 have all' --transport "${options[@]}" -- 100 0 0
    [[ $(sent 0) == 300 ]] || fail "$network: the root has sent $(sent 0) messages, and 3 for each of 100 are expected"
    [[ $(sent 1) == 200 && $(sent 5) == 100 ]] || fail "$network: members on the way have sent $(sent 1) and $(sent 5)"
done
all 2 '1 of 1 have all' --transport xswitch -- 20 0 0
all 3 '2 of 2 have all' --transport xswitch -- 20 0 0
all 6 '5 of 5 have all' --transport ofi --fault 'drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=3' -- 60 0 0
all 8 '7 of 7 have all' --transport xswitch --topology mesh:4x4 --time virtual -- 60 0 0
all 6 '5 of 5 have all' --transport direct -- 60 0 0
all 6 '5 of 5 have all' --transport pointdesign --topology gh:2x2x2 -- 60 0 0
all 6 '5 of 5 have all' --transport pcie -- 100 1 0
# Without rank 1 its three members hear from rank 0; what it had not sent on is lost for them.
timeout "$patience" "$ulfmrun" --transport xswitch --topology mesh:4x4 --ft -n 8 "$work/tree" 100 0 1 >"$work/out" 2>"$work/stats" || true
grep -qx '[3-6] of 7 have all' "$work/out" || { cat "$work/stats" >>"$work/out" && fail 'the members behind one that died'; }
echo 'trees bring each message to each member once and in order, over every transport'
