#!/usr/bin/env bash
# Virtual time over every emulated interconnect, for MPI, NX/2 and port programs, for programs that time themselves by the C
# library's clocks, over networks that lose frames, and when a process dies.
set -uo pipefail
# shellcheck source=fabric_common.bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
examples=$here/../../examples/ports
. "$here/fabric_common.bash"

cat >clocks.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
static double day(void) {
  struct timeval t;
  gettimeofday(&t, NULL);
  return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}
static double steady(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
int main(int argc, char **argv) {
  const struct timespec while_ = {2, 500000000};
  struct timespec until;
  MPI_Init(&argc, &argv);
  const double wall = MPI_Wtime(), began = day(), stood = steady();
  const time_t whole = time(NULL);
  sleep(100);
  usleep(500000);
  nanosleep(&while_, NULL);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 7;
  clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
  while (day() < began + 111) continue; /* its questions take time */
  /* The kernel's rules hold: a length that is none is refused, and select tells that nothing is left. */
  struct timeval left = {2, 250000}, wrong = {-1, 0};
  const double slept = steady();
  const int calls = select(0, NULL, NULL, NULL, &left) + pselect(0, NULL, NULL, NULL, &while_, NULL) + poll(NULL, 0, 1000) +
                    ppoll(NULL, 0, &while_, NULL) + thrd_sleep(&while_, NULL);
  if (calls != 0 || left.tv_sec != 0 || left.tv_usec != 0 || select(0, NULL, NULL, NULL, &wrong) != -1 || errno != EINVAL ||
      steady() - slept < 10.75 || steady() - slept > 10.76)
    puts("a sleep is wrong");
  printf("%.2f %.2f %.2f %ld\n", MPI_Wtime() - wall, day() - began, steady() - stood, (long)(time(NULL) - whole));
  return MPI_Finalize();
}
END
cat >die.c <<'END'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, ranks, nothing = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0;; i++) {
    if (rank == 1 && i == atoi(argv[1])) raise(SIGKILL);
    MPI_Sendrecv_replace(&nothing, 1, MPI_INT, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
}
END
cat >turns.c <<'END'
#include <cube.h>
#include <stdio.h>
int main(void) {
  long ball = 0, node = mynode(), other = 1 - node;
  const double began = dclock();
  for (int i = 0; i < 100; i++) {
    if (i % 2 == node) csend(1, &ball, sizeof ball, other, 0);
    else crecv(1, &ball, sizeof ball);
    ball++;
  }
  if (node == 0) printf("%.9f %ld\n", dclock() - began, mclock() >= 0 ? ball : -1);
  return 0;
}
END
cat >limits.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int changed;
static struct timespec from_now(clockid_t clock, int seconds) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_sec += seconds;
  return t;
}
/* Makes no call, and has the host's time. */
static void *worker(void *nothing) {
  const struct timespec until = from_now(CLOCK_REALTIME, 1);
  if (pthread_mutex_lock(&lock) != 0 || pthread_cond_timedwait(&change, &lock, &until) != ETIMEDOUT) puts("the host's time is wrong");
  if (until.tv_sec < 1700000000) puts("a thread without calls has virtual time");
  changed = 1;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
  return nothing;
}
int main(int argc, char **argv) {
  pthread_t thread;
  sem_t none; /* never posted */
  int ends[2], first, second, result = 0;
  MPI_Init(&argc, &argv);
  pthread_mutex_lock(&lock);
  if (pthread_create(&thread, NULL, worker, NULL) != 0 || pipe(ends) != 0 || sem_init(&none, 0, 0) != 0) return 1;
  /* It comes long before its limit, in however long a time of the host. */
  struct timespec until = from_now(CLOCK_MONOTONIC, 1000);
  while (!changed && result == 0) result = pthread_cond_clockwait(&change, &lock, CLOCK_MONOTONIC, &until);
  printf("%d %.2f", result, MPI_Wtime());
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  /* Nothing comes: each takes its second, for the host and in virtual time. */
  pthread_mutex_lock(&lock);
  until = from_now(CLOCK_REALTIME, 1);
  result = pthread_cond_timedwait(&change, &lock, &until);
  until = from_now(CLOCK_REALTIME, 1);
  first = sem_timedwait(&none, &until) == -1 ? errno : 0;
  pthread_mutex_lock(&held);
  until = from_now(CLOCK_REALTIME, 1);
  second = pthread_mutex_timedlock(&held, &until);
  struct pollfd file = {ends[0], POLLIN, 0};
  const int ready = poll(&file, 1, 1000);
  printf(" %d %d %d %d %.2f\n", result == ETIMEDOUT, first == ETIMEDOUT, second == ETIMEDOUT, ready, MPI_Wtime());
  return MPI_Finalize();
}
END
for program in clocks limits die; do "$stage/bin/mpicc" -O1 "$program.c" -o "$program" || exit 1; done
"$stage/bin/nxcc" -O1 turns.c -o turns || exit 1
"$stage/bin/mpicc" -O1 -I"$stage/include" "$examples/pingpong.c" -o pingpong -L"$stage/lib" -lulfm -Wl,-rpath,"$stage/lib" || exit 1

# same NAME RUNS OPTIONS...: all runs have the same times and print the same.
same() {
    local name=$1 runs=$2 first='' sum i
    shift 2
    for ((i = 0; i < runs; i++)); do
        timeout 250 "$run" --times times.json "$@" </dev/null >out 2>err || fail "$name" "exit code $?"
        sum=$(sed 's/"host_s":[0-9.]*,//' times.json | cksum)
        [[ -z $first || $sum == "$first" ]] || fail "$name" "run $i differs"
        first=$sum
    done
    echo "ok   $name: $runs runs the same"
}

none=virtual,compute=none
for where in 'pcie boards:2x2' 'pointdesign gh:2x2x2' 'ideal single:4' 'xswitch th8' 'dcm cube:2'; do
    read -r model shape <<<"$where"
    same "$model, trapezoid" 3 --transport "$model" --topology "$shape" --time virtual,compute=fixed:500 -n 4 "$programs/trapezoid"
    same "$model, NX/2" 3 --transport "$model" --topology "$shape" --time $none -n 2 ./turns
    cp out turns.out
    grep -q ' 100$' turns.out || fail "$model, NX/2" "printed $(cat turns.out)"
    over "$model, ports" 'every one as sent' --transport "$model" --topology "$shape" --time $none -n 2 ./pingpong
done
# With software and cards that cost nothing, everything takes cycles. Boards and circuits have 16 KB at a time on their way.
cat >stream.c <<'END'
#include <mpi.h>
#include <stdio.h>
static char data[60000];
int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 40; i++)
    if (rank == 0) MPI_Ssend(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1) MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) puts("done");
  return MPI_Finalize();
}
END
"$stage/bin/mpicc" -O1 stream.c -o stream || exit 1
free=send_ns=0,receive_ns=0,system_send_ns=0,system_receive_ns=0,card_ns=0,card_byte_ps=0,look_ns=1
for where in 'xswitch th8' 'dcm cube:3' 'pcie boards:4x1' 'pointdesign gh:2x2x2' 'ideal th8'; do
    read -r model shape <<<"$where"
    for cycle in 100000 200000; do
        over "$model, $cycle ps" 'done' --transport "$model,cycle_ps=$cycle,$free" --topology "$shape" --time $none --times $cycle.json \
            -n 4 ./stream
    done
    python3 -c 'import json
full, half = (json.load(open(f"{c}.json"))["virtual_s"] for c in (100000, 200000))
assert abs(half / full / 2 - 1) < 0.01, half / full' || fail "$model" 'half the rate does not take twice the time'
done

# MPICH waits for the answer to a connection in a loop of its own, within one call; on a cube the answer takes 0.1 ms.
cat >spawn.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  MPI_Comm parent, children;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&children);
    puts("spawned");
  } else {
    MPI_Comm_disconnect(&parent);
  }
  return MPI_Finalize();
}
END
"$stage/bin/mpicc" -O1 spawn.c -o spawn || exit 1
over 'spawning on a cube' spawned --transport dcm --topology cube:2 --time $none -n 1 ./spawn

# 100 trips of 350 us, as Pierce has them.
over 'NX/2 at its speed' '^0\.03[45]' --transport dcm --topology cube:1 --time $none -n 2 ./turns

over "the C library's clocks" '^121.75 121.75 121.75 121$' --transport xswitch --time $none -n 2 ./clocks
over 'waits with a limit' '^0 0.00 1 1 1 0 4.00$' --transport xswitch --time $none -n 1 ./limits
! grep -q wrong out || fail "the C library's clocks" "$(cat out)"
same 'lost frames' 4 --transport xswitch --topology mesh:2x2 --fault "$bad_network" --time $none -n 4 "$programs/lu"
cp out lost.out
same 'the protocol' 4 --transport xswitch --time $none -n 4 env ULFM_PROTOCOL=always "$programs/lu"
for where in 'xswitch th8' 'pcie boards:2x2'; do
    read -r model shape <<<"$where"
    for at in 0 500; do
        refused "$model, a rank dies" . --transport "$model" --topology "$shape" --time $none -n 3 ./die $at
    done
done
MPIR_CVAR_ASYNC_PROGRESS=1 refused 'threads that make progress by themselves' 'leave it out with --time virtual' \
    --transport xswitch --time $none -n 2 "$programs/trapezoid"
exit $((failures != 0))
