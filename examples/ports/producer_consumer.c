/* Every rank but 0 produces items of many sizes, rank 0 consumes them. The port has few buffers on purpose: a producer
 * finds them all on their way again and again, and waits until they have left.
 * Run: ulfmrun -n 2 producer_consumer_c   (or more) */
#include <string.h>

#include "must.h"

enum { PORT = 3, ITEMS = 3000 /* of each producer */ };
static const int64_t TEN_SECONDS = 10000000000;

struct item_header {
  uint32_t producer, number;
};

/* From nothing to 100 KB behind the header: in one cache line, in one slot, and in many frames. */
static size_t payload_of(uint32_t number) { return number % 100 == 99 ? 100000 : number % 500; }
static unsigned char filling(struct item_header item) { return (unsigned char)(item.producer * 31 + item.number); }

/* A send buffer; waits while all of them are on their way. */
static unsigned char* compose(ulfm_port port, size_t size) {
  void* buffer;
  int rc;
  while ((rc = ulfm_compose(port, size, &buffer)) == ULFM_ERR_FULL) must(ulfm_flush(port, -1));
  must(rc);
  return buffer;
}

static void produce(ulfm_port port, uint32_t rank, ulfm_address consumer) {
  for (uint32_t number = 0; number < ITEMS; ++number) {
    const struct item_header item = {rank, number};
    unsigned char* bytes = compose(port, sizeof item + payload_of(number));
    memcpy(bytes, &item, sizeof item);
    memset(bytes + sizeof item, filling(item), payload_of(number));
    must(ulfm_post(port, consumer));
  }
}

static int is_next(const ulfm_message* message, uint32_t* next, uint32_t processes) {
  struct item_header item;
  const unsigned char* payload = (const unsigned char*)message->bytes + sizeof item;
  if (message->size < sizeof item) return 0;
  memcpy(&item, message->bytes, sizeof item);
  if (item.producer >= processes || item.number != next[item.producer]++) return 0;
  if (message->size != sizeof item + payload_of(item.number)) return 0;
  for (size_t i = 0; i < payload_of(item.number); ++i)
    if (payload[i] != filling(item)) return 0;
  return 1;
}

static int consume(ulfm_port port, uint32_t processes) {
  uint32_t* next = calloc(processes, sizeof *next); /* number expected, by producer */
  const uint32_t all = ITEMS * (processes - 1);
  uint32_t good = 0;
  while (next && good < all) {
    ulfm_message item;
    must(ulfm_wait(port, TEN_SECONDS, &item));
    if (!is_next(&item, next, processes)) break;
    must(ulfm_release(port, &item));
    ++good;
  }
  free(next);
  if (good == all)
    printf("producer_consumer: %u items from %u producers, all whole and in order\n", (unsigned)all,
           (unsigned)(processes - 1));
  else fprintf(stderr, "item %u of %u is damaged or out of order\n", (unsigned)good, (unsigned)all);
  return good != all;
}

int main(void) {
  ulfm_job job;
  ulfm_port port;
  ulfm_address consumer;
  int code = 0;
  must(ulfm_job_join(&job));
  const int rank = ulfm_job_rank(job);
  if (ulfm_job_size(job) < 2) {
    fprintf(stderr, "producer_consumer needs 2 processes or more; found 1: run it with ulfmrun -n 2\n");
    return 2;
  }
  const ulfm_port_options options = {.number = PORT, .slot_bytes = 1024, .depth = 4};
  must(ulfm_port_open(job, &options, &port));
  must(ulfm_job_barrier(job)); /* the consumer's port is open from here on */
  must(ulfm_job_address(job, 0, PORT, &consumer));
  if (rank == 0) code = consume(port, (uint32_t)ulfm_job_size(job));
  else produce(port, (uint32_t)rank, consumer);
  must(ulfm_port_close(port)); /* sends what is still to be sent */
  must(ulfm_job_leave(job));
  return code;
}
