/* Rank 0 sends messages to a group of all others, who answer when they have them all.
 * Run: ulfmrun -n 4 multicast_c   and: ulfmrun --transport pointdesign --topology gh:2x2x2 -n 8 multicast_c */
#include <string.h>

#include "must.h"

enum { PORT = 5, MESSAGES = 500 };
static const int64_t ONE_MINUTE = 60000000000;

static size_t size_of(uint32_t number) { return number % 100 == 99 ? 100000 : 4 + number % 700; }

static void send_all(ulfm_port port, ulfm_group others) {
  for (uint32_t number = 0; number < MESSAGES; ++number) {
    void* buffer;
    int rc;
    while ((rc = ulfm_compose(port, size_of(number), &buffer)) == ULFM_ERR_FULL) must(ulfm_flush(port, -1));
    must(rc);
    memset(buffer, (int)(number & 0xff), size_of(number));
    memcpy(buffer, &number, sizeof number);
    must(ulfm_post_group(port, others));
  }
}

static int is_as_sent(const ulfm_message* message, uint32_t number) {
  uint32_t found;
  if (message->size != size_of(number)) return 0;
  memcpy(&found, message->bytes, sizeof found);
  for (size_t i = sizeof found; i < message->size; ++i)
    if (((const unsigned char*)message->bytes)[i] != (number & 0xff)) return 0;
  return found == number;
}

static uint32_t receive_all(ulfm_port port) {
  uint32_t good = 0;
  ulfm_message message;
  ulfm_address root = {0, 0, 0};
  for (uint32_t number = 0; number < MESSAGES; ++number) {
    must(ulfm_wait(port, ONE_MINUTE, &message));
    good += (uint32_t)is_as_sent(&message, number);
    root = message.source;
    must(ulfm_release(port, &message));
  }
  void* buffer;
  must(ulfm_compose(port, sizeof good, &buffer));
  memcpy(buffer, &good, sizeof good);
  must(ulfm_post(port, root));
  return good;
}

/* How many of the others have got everything. */
static int collect(ulfm_port port, int others) {
  int whole = 0;
  for (int i = 0; i < others; ++i) {
    ulfm_message message;
    uint32_t good;
    must(ulfm_wait(port, ONE_MINUTE, &message));
    memcpy(&good, message.bytes, sizeof good);
    whole += good == MESSAGES;
    must(ulfm_release(port, &message));
  }
  return whole;
}

int main(void) {
  ulfm_job job;
  ulfm_port port;
  ulfm_group group;
  int code = 0;
  must(ulfm_job_join(&job));
  const int rank = ulfm_job_rank(job), size = ulfm_job_size(job);
  if (size < 2) {
    fprintf(stderr, "multicast needs 2 processes or more; found 1: run it with ulfmrun -n 4\n");
    return 2;
  }
  const ulfm_port_options options = {.number = PORT};
  must(ulfm_port_open(job, &options, &port));
  must(ulfm_job_barrier(job)); /* all ports are open from here on */
  if (rank != 0) {
    code = receive_all(port) != MESSAGES;
  } else {
    ulfm_address* others = calloc((size_t)size, sizeof *others);
    for (int i = 1; others && i < size; ++i) must(ulfm_job_address(job, i, PORT, &others[i - 1]));
    must(ulfm_group_open(port, others, size - 1, &group));
    free(others);
    send_all(port, group);
    must(ulfm_group_close(port, group)); /* what was posted is still sent */
    const int whole = collect(port, size - 1);
    printf("multicast: %d messages to each of %d receivers, %d of them have all as sent\n", MESSAGES, size - 1, whole);
    code = whole != size - 1;
  }
  must(ulfm_port_close(port));
  must(ulfm_job_leave(job));
  return code;
}
