#!/usr/bin/env bash
# The port examples build against the installed library as a user would build them, run, and find everything as sent.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}
source=${ULFM_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v pkg-config >/dev/null || { echo "skipped: no pkg-config" && exit 77; }
[[ -e $stage/bin/mpiexec ]] || { echo "skipped: no mpiexec in the stage" && exit 77; }
"$source/examples/ports/build" "$work" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }

# run SAYS PROCESSES PROGRAM: it must succeed and say that.
run() {
    local said
    said=$(timeout 120 "$stage/bin/ulfmrun" -n "$2" "$work/$3" 2>&1) || { echo "$3 failed: $said" && exit 1; }
    grep -q -- "$1" <<<"$said" || { echo "$3 says: $said" && exit 1; }
}

for program in pingpong pingpong_c; do
    run 'every one as sent' 2 $program
    ! "$work/$program" 2>"$work/log" || { echo "$program alone succeeds" && exit 1; }
    grep -q 'needs 2 processes' "$work/log" || { echo "$program alone says:" && cat "$work/log" && exit 1; }
done
for program in producer_consumer producer_consumer_c; do
    run '3000 items from 1 producers, all whole and in order' 2 $program
    run '9000 items from 3 producers, all whole and in order' 4 $program
    # Small lanes and one slot: everything waits for everything.
    ULFM_LANE_BYTES=8K ULFM_LANE_CELLS=8 ULFM_LANE_AFTER=0 run 'in order' 3 $program
done
for transport in direct pointdesign xswitch ofi; do
    export ULFM_TRANSPORT=$transport
    run '600 messages from 3 senders, all whole and in order at each receiver' 4 multicast
    run '500 messages to each of 3 receivers, 3 of them have all as sent' 4 multicast_c
done
unset ULFM_TRANSPORT
echo "the port examples build, run and check what they receive"

# A reader that is slow is told of everything and of no death: rank 1 fills its lane, closes its port and ends, and rank 0
# reads only then. For some number of messages the lane has no room for the last word at that moment. So it is with ports
# behind one of a tree.
cat >"$work/slow.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ulfm/ulfm.h>
int main(int argc, char **argv) {
  const int count = atoi(argv[argc - 1]), by_tree = strcmp(argv[argc - 2], "tree") == 0;
  ulfm_job job;
  ulfm_port port;
  ulfm_address to[3];
  ulfm_group group;
  ulfm_message message;
  const ulfm_port_options options = {.number = 3, .slot_bytes = 1024, .depth = 32};
  if (ulfm_job_join(&job) || ulfm_port_open(job, &options, &port) || ulfm_job_barrier(job)) return 2;
  if (ulfm_job_rank(job) == 1) {
    for (int i = 0; i < 3; i++) ulfm_job_address(job, i == 0 ? 0 : i + 1, 3, &to[i]);
    if (by_tree && ulfm_group_open_tree(port, to, 3, &group)) return 3;
    for (int i = 0; i < count; i++) {
      void *buffer;
      if (ulfm_compose(port, 64, &buffer) || (by_tree ? ulfm_post_group(port, group) : ulfm_post(port, to[0])))
        return 4;
    }
  } else {
    if (ulfm_job_rank(job) == 0) usleep(200000);
    for (int i = 0; i < count; i++)
      if (ulfm_wait(port, 10000000000, &message) < 0 || ulfm_release(port, &message) < 0)
        return fprintf(stderr, "message %d: %s\n", i, ulfm_last_error()), 4;
    const int rc = ulfm_wait(port, 300000000, &message);
    if (rc != ULFM_ERR_TIMED_OUT) return fprintf(stderr, "%d messages, then %d: %s\n", count, rc, ulfm_last_error()), 5;
  }
  return ulfm_port_close(port) || ulfm_job_leave(job) ? 6 : 0;
}
C
# shellcheck disable=SC2046
PKG_CONFIG_PATH=$stage/lib/pkgconfig cc "$work/slow.c" -o "$work/slow" $(PKG_CONFIG_PATH=$stage/lib/pkgconfig pkg-config --cflags --libs ulfm) \
    "-Wl,-rpath,$stage/lib"
export ULFM_LANE_BYTES=8K ULFM_LANE_CELLS=8 ULFM_LANE_AFTER=0
reads_slowly() {
    said=$(timeout 120 "$stage/bin/ulfmrun" -n "$@" 2>&1) || { echo "a slow reader, $*: $said" && exit 1; }
}
for count in 4 5 6 7 8 9 10; do reads_slowly 2 "$work/slow" one $count; done
for count in 30 31 32 33; do reads_slowly 4 --transport xswitch,unread=4K "$work/slow" tree $count; done
