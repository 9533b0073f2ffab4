#!/usr/bin/env bash
# Jobs in virtual time: the same to the byte whatever the host does, incast as by hand, half the rate takes twice the time,
# programs that compute alone speed up as they should, a deadlock is told, and what cannot be is refused.
set -uo pipefail
# shellcheck source=fabric_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"

cat >incast.c <<'END'
#include <mpi.h>
#include <stdio.h>
static char data[4000];
int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 200 * (rank == 0 ? size - 1 : 1); i++)
    if (rank == 0) MPI_Recv(data, sizeof data, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) puts("done");
  return MPI_Finalize();
}
END
cat >deadlock.c <<'END'
#include <mpi.h>
int main(int argc, char **argv) {
  int rank, nothing;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&nothing, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
END
cat >any.c <<'END'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, got[10], which, some[10];
  MPI_Request requests[10];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 10; i++) MPI_Irecv(&got[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &requests[i]);
  if (atoi(argv[1]) == 0) MPI_Waitany(10, requests, &which, MPI_STATUS_IGNORE);
  else MPI_Waitsome(10, requests, &which, some, MPI_STATUSES_IGNORE);
  return MPI_Finalize();
}
END
cat >alone.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, flag = 0, got = 0, tests = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double begin = MPI_Wtime();
  if (rank == 0) {
    while (MPI_Wtime() < begin + 1e-3) {}
    MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    for (; !flag; tests++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    printf("%s\n", tests > 100 && MPI_Wtime() > begin + 1e-3 ? "looked" : "too soon");
  }
  return MPI_Finalize();
}
END
cat >calls.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, flag, all = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = rank; i < all; i += size) MPI_Initialized(&flag);
  if (rank == 0) puts("done");
  return MPI_Finalize();
}
END
cat >forever.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int found = 0;
  MPI_Init(&argc, &argv);
  puts("began");
  fflush(stdout);
  while (!found) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
END
# One half of the ranks connects to the other, and they leave each other again.
cat >connect.c <<'END'
#include <mpi.h>
int main(int argc, char **argv) {
  char port[MPI_MAX_PORT_NAME] = "";
  int rank, sum;
  MPI_Comm half, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < 3; i++) {
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank % 2 == 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &both);
    else MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &both);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    if (rank == 0) MPI_Close_port(port);
    MPI_Comm_disconnect(&both);
  }
  MPI_Comm_free(&half);
  return MPI_Finalize();
}
END
for program in incast deadlock any alone calls forever connect; do "$stage/bin/mpicc" -O1 "$program.c" -o "$program" || exit 1; done
"$stage/bin/mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/orders.c" -o orders || exit 1

# value FILE EXPRESSION: of what was read as `t`.
value() { python3 -c "import json,sys; t=json.load(open(sys.argv[1])); print($2)" "$1"; }
check() { if [[ $2 == True ]]; then echo "ok   $1"; else fail "$1" "not so: $2"; fi; }

# same NAME RUNS OPTIONS...: all runs, half of them beside two busy processes, have the same times.
same() {
    local name=$1 runs=$2 first='' sum i busy=()
    shift 2
    for ((i = 0; i < runs; i++)); do
        if ((i == runs / 2)); then
            for _ in 1 2; do (while :; do :; done) & busy+=($!); done
        fi
        timeout 250 "$run" --times times.json "$@" </dev/null >out 2>err || fail "$name" "exit code $?"
        sum=$(sed 's/"host_s":[0-9.]*,//' times.json | cksum)
        [[ -z $first || $sum == "$first" ]] || fail "$name" "run $i differs"
        first=$sum
    done
    kill "${busy[@]}" && wait "${busy[@]}" 2>/dev/null
    echo "ok   $name: $runs runs the same"
}

none=virtual,compute=none
same 'incast' 6 --transport xswitch --time $none -n 8 ./incast
python3 -m json.tool times.json >/dev/null || fail 'times' 'no JSON'
# The output is never idle, and while it carries a frame of one input six others wait.
check 'incast, waits as by hand' \
    "$(value times.json 'abs(sum(l["wait_s"] for l in t["links"]) / t["virtual_s"] / 6 - 1) < 0.01')"
cp times.json full.json
over 'incast, half the rate' 'done' --transport xswitch,cycle_ps=16000 --time $none --times times.json -n 8 ./incast
check 'half the rate takes twice the time' "$(python3 -c '
import json
half, full = (json.load(open(f))["virtual_s"] for f in ("times.json", "full.json"))
print(abs(half / full / 2 - 1) < 0.01)')"
printf 'switches = 2\nlinks = ["s0.B - s1.A"]\nnodes = ["s0.C", "s1.C"]\n' >two.toml
(cat two.toml && echo 'rate = ["s0.B: 2"]') >slow.toml
for topology in two slow; do
    over "halo, $topology" '' --transport xswitch --topology $topology.toml --time $none --times $topology.json -n 2 "$programs/halo"
done
check 'a link of half the rate is busy for twice the time' "$(python3 -c '
import json
slow, two = ({(l["from"], l["to"]): l for l in json.load(open(f + ".json"))["links"]} for f in ("slow", "two"))
print(all(slow[l]["bytes"] == two[l]["bytes"] and
          round(slow[l]["busy_s"] / two[l]["busy_s"], 6) == (2 if l in (("s0.B", "s1.A"), ("s1.A", "s0.B")) else 1)
          for l in two))')"
refused 'links of its own, over another model' 'no latency and no rate of single links' --transport ideal --topology slow.toml -n 2 ./incast
same 'halo over a mesh, fixed computing' 4 --transport xswitch --topology mesh:2x2 --time virtual,compute=fixed:1000 -n 4 \
    "$programs/halo"
same 'trapezoid over a cube' 4 --transport dcm --topology cube:3 --time $none -n 8 "$programs/trapezoid"
# Sends that wait for room, messages from anybody, nonblocking collectives beside blocking receives, a window, in drawn order.
same 'drawn patterns over a mesh' 4 --transport xswitch,unread=4K --topology mesh:2x2 --time $none -n 5 ./orders 4 30
same 'drawn patterns over a cube' 4 --transport dcm --topology cube:3 --time $none -n 7 ./orders 1 20
same 'drawn patterns over a hypercube with multicast' 4 --transport pointdesign --topology gh:2x2x2 --time $none -n 8 ./orders 4 20
same 'more messages than slots, at 16 ranks' 4 --transport ideal --topology mesh:4x4 --time $none -n 16 ./orders 2 10
same 'halves that connect to each other' 6 --transport xswitch --time $none -n 5 ./connect
over 'recording' "$answer" --transport xswitch --time "virtual,record=$PWD/gaps" -n 4 "$programs/trapezoid"
same 'recorded computing' 4 --transport xswitch --time "virtual,compute=recorded:$PWD/gaps" -n 4 "$programs/trapezoid"
over 'tests and the time' looked --transport xswitch --time $none -n 2 ./alone

over 'alone' 'done' --transport xswitch --topology mesh:8x8 --time virtual,compute=fixed:1e6 --times one.json -n 1 ./calls 64000
over 'in company' 'done' --transport xswitch --topology mesh:8x8 --time virtual,compute=fixed:1e6 --times many.json -n 64 \
    ./calls 64000
check 'speed-up without communication' "$(python3 -c '
import json
one, many = (json.load(open(f)) for f in ("one.json", "many.json"))
print(one["virtual_s"] / many["virtual_s"] >= 63)')"

refused 'a deadlock' 'rank 1 at 0.0.* waits in MPI_Recv for a message from rank 0, tag 0 in MPI_COMM_WORLD' --transport xswitch --time $none -n 2 ./deadlock
grep -q 'deadlock: rank 0 waits for a message from rank 1.*; rank 1 waits' err || fail 'a deadlock' 'no cycle'
refused 'a deadlock in MPI_Waitany' 'rank 1 at 0.0.* waits in MPI_Waitany for a message from rank 0, tag 0' \
    --transport xswitch --time $none -n 2 ./any 0
refused 'a deadlock in MPI_Waitsome' 'rank 1 at 0.0.* waits in MPI_Waitsome for a message from rank 0, tag 0' \
    --transport xswitch --time $none -n 2 ./any 1
over 'a trace' '' --transport xswitch --time $none --times traced.json --trace trace.json -n 2 "$programs/halo"
check 'a trace has virtual time' "$(python3 -c '
import json
events = json.load(open("trace.json"))["traceEvents"]
end = json.load(open("traced.json"))["virtual_s"] * 1e6
times = [e["ts"] + e.get("dur", 0) for e in events if "ts" in e]
print(len(times) > 10 and max(times) <= end + 1 and any(e["name"] == "wait" for e in events))')"
refused 'no emulation' "moves messages in the host's time" --transport direct --time virtual -n 2 ./incast
refused 'no such time' 'there is "virtual" time' --transport xswitch --time real -n 2 ./incast
refused 'no such computing' 'compute is measured, none' --transport xswitch --time virtual,compute=some -n 2 ./incast
# A job that was told to end has not ended well, and says where its time went.
"$run" --transport xswitch --time $none -n 2 ./forever </dev/null >out 2>err &
until grep -q began out; do sleep 0.1; done
kill "$!"
code=0
wait "$!" || code=$?
((code == 128 + 15)) && grep -q 'virtual time' err && echo 'ok   told to end' || fail 'told to end' "exit code $code"

# What cannot be read or written is said before the job, not behind it.
refused 'fixed computing without a number' 'fixed:NANOSECONDS' --transport xswitch --time virtual,compute=fixed:ten -n 2 ./incast
refused 'no recording' 'none.0 cannot be read' --transport xswitch --time "virtual,compute=recorded:$PWD/none" -n 2 ./incast
refused 'a recording of fewer ranks' 'gaps.4 cannot be read' --transport xswitch --time "virtual,compute=recorded:$PWD/gaps" \
    -n 5 "$programs/trapezoid"
for rank in 0 1; do cp incast.c "foreign.$rank"; done
refused 'a foreign file' 'foreign.[01] is no recording: line 1' --transport xswitch --time "virtual,compute=recorded:$PWD/foreign" \
    -n 2 ./incast
for rank in 0 1 2 3; do head -n 5 "gaps.$rank" >"short.$rank"; done
over 'a short recording' "$answer" --transport xswitch --time "virtual,compute=recorded:$PWD/short" -n 4 "$programs/trapezoid"
grep -q 'rank 0 made [0-9]* calls more than were recorded' err || fail 'a short recording' 'nothing told of it'
over 'a job that only starts' started --transport xswitch --time $none -n 2 echo started
grep -q '^ulfm: virtual time 0.000000000 s, host time [0-9.]* s, no virtual time passed$' err || fail 'a job that only starts' 'a slow-down'
over 'a whole recording' "$answer" --transport xswitch --time "virtual,compute=recorded:$PWD/gaps" -n 4 "$programs/trapezoid"
! grep -q 'were recorded' err || fail 'a whole recording' 'something told of it'
over 'a recording of another program' 'done' --transport xswitch --time "virtual,compute=recorded:$PWD/gaps" -n 1 ./calls 0
grep -q 'rank 0 made [0-9]* calls fewer than were recorded' err || fail 'a recording of another program' 'nothing told of it'
refused 'a recording nowhere' 'no/gaps.0 cannot be written' --transport xswitch --time "virtual,record=$PWD/no/gaps" -n 2 ./incast
refused 'recording a recording' 'in a file already' --transport xswitch \
    --time "virtual,compute=recorded:$PWD/gaps,record=$PWD/more" -n 2 ./incast
refused 'times nowhere' 'no/times.json cannot be written' --transport xswitch --time $none --times no/times.json -n 2 ./incast
refused 'more than virtual time has' 'rank 0 goes beyond 106 days' --transport xswitch --time virtual,compute=fixed:1e12 \
    -n 1 ./calls 64000
refused 'times alone' 'add --time virtual' --transport xswitch --times x.json -n 2 ./incast
exit $((failures != 0))
