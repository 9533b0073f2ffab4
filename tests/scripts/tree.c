/* tree MESSAGES SLOW DIES: rank 0 sends so many down a tree to all others; rank SLOW sleeps first, rank DIES dies
 * at the tenth message. Each rank but 0 tells rank 0 at the end how many were as sent. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulfm/ulfm.h>
#include <unistd.h>
enum { PORT = 7 };
static int must(int rc) {
  if (rc < 0 && rc != ULFM_ERR_PEER_FAILED) fprintf(stderr, "tree: %s\n", ulfm_last_error()), exit(1);
  return rc;
}
static size_t size_of(int i) { return i % 10 == 9 ? 70000 : (size_t)(i * 37 % 3000 + 4); }
static void receive(ulfm_port port, ulfm_message* message) {
  while (must(ulfm_wait(port, -1, message)) < 0)
    ; /* a death is told once */
}
int main(int argc, char** argv) {
  ulfm_job job;
  ulfm_port port;
  ulfm_group group;
  ulfm_message message;
  void* buffer;
  const int messages = atoi(argv[1]), slow = atoi(argv[2]), dies = atoi(argv[3]);
  int good = 0, whole = 0;
  signal(SIGUSR1, SIG_IGN); /* with --ft mpiexec tells of a death so */
  must(ulfm_job_join(&job));
  const int rank = ulfm_job_rank(job), size = ulfm_job_size(job);
  const ulfm_port_options options = {.number = PORT};
  ulfm_address* others = calloc((size_t)size, sizeof *others);
  must(ulfm_port_open(job, &options, &port));
  must(ulfm_job_barrier(job));
  if (rank != 0) {
    int next = 0;
    if (rank == slow) sleep(1);
    while (next < messages) {
      receive(port, &message);
      const unsigned char* bytes = message.bytes;
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
      for (size_t k = 0; k < size_of(i); ++k) ((unsigned char*)buffer)[k] = (unsigned char)(k * 7 + (size_t)i);
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
