/* echo SIZE...: messages between two ports, to and fro, in virtual time. Lines "size us", one way. */
#include <stdio.h>
#include <stdlib.h>
#include <ulfm/ulfm.h>

enum { PORT = 7, TURNS = 20 };

static void must(int rc) {
  if (rc >= 0) return;
  fprintf(stderr, "echo: %s\n", ulfm_last_error());
  exit(1);
}

static void turn(ulfm_port port, ulfm_address peer, size_t size, int sends) {
  void* buffer;
  ulfm_message message;
  if (sends) {
    must(ulfm_compose(port, size, &buffer));
    must(ulfm_post(port, peer));
  } else {
    must(ulfm_wait(port, -1, &message));
    must(ulfm_release(port, &message));
  }
}

int main(int argc, char** argv) {
  ulfm_job job;
  ulfm_port port;
  ulfm_address peer;
  must(ulfm_job_join(&job));
  const int rank = ulfm_job_rank(job);
  const ulfm_port_options options = {.number = PORT};
  must(ulfm_port_open(job, &options, &port));
  must(ulfm_job_barrier(job));
  must(ulfm_job_address(job, 1 - rank, PORT, &peer));
  for (int a = 1; a < argc; ++a) {
    const size_t size = strtoul(argv[a], NULL, 10);
    for (int i = 0; i < 2; ++i) turn(port, peer, size, i == rank); /* connections are made */
    const int64_t begin = ulfm_time_now();
    for (int i = 0; i < 2 * TURNS; ++i) turn(port, peer, size, i % 2 == rank);
    if (rank == 0) printf("%zu %.6f\n", size, (double)(ulfm_time_now() - begin) / 2000.0 / TURNS);
  }
  must(ulfm_port_close(port));
  must(ulfm_job_leave(job));
  return 0;
}
