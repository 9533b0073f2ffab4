/* A counter goes back and forth between two processes: compose in place, post, wait, read in place.
 * Run: ulfmrun -n 2 pingpong_c */
#include <string.h>

#include "must.h"

enum { PORT = 7, TURNS = 20000 };
static const int64_t TEN_SECONDS = 10000000000;

static void throw_ball(ulfm_port port, uint32_t turn, ulfm_address peer) {
  void* buffer;
  must(ulfm_compose(port, sizeof turn, &buffer));
  memcpy(buffer, &turn, sizeof turn);
  must(ulfm_post(port, peer));
}

static void catch_ball(ulfm_port port, uint32_t turn) {
  ulfm_message ball;
  must(ulfm_wait(port, TEN_SECONDS, &ball));
  if (ball.size != sizeof turn || memcmp(ball.bytes, &turn, sizeof turn) != 0) {
    fprintf(stderr, "turn %u: something else arrived\n", (unsigned)turn);
    exit(1);
  }
  must(ulfm_release(port, &ball));
}

int main(void) {
  ulfm_job job;
  ulfm_port port;
  ulfm_address peer;
  must(ulfm_job_join(&job));
  const int rank = ulfm_job_rank(job);
  if (ulfm_job_size(job) != 2) {
    fprintf(stderr, "pingpong needs 2 processes; found %d: run it with ulfmrun -n 2\n", ulfm_job_size(job));
    return 2;
  }
  const ulfm_port_options options = {.number = PORT};
  must(ulfm_port_open(job, &options, &port));
  must(ulfm_job_barrier(job)); /* the other port is open from here on */
  must(ulfm_job_address(job, 1 - rank, PORT, &peer));

  for (uint32_t turn = 0; turn < TURNS; ++turn) {
    if ((int)(turn % 2) == rank) throw_ball(port, turn, peer);
    else catch_ball(port, turn);
  }
  if (rank == 0) printf("pingpong: %d turns, every one as sent\n", TURNS);
  must(ulfm_port_close(port)); /* sends what is still to be sent */
  must(ulfm_job_leave(job));
  return 0;
}
