// For one program: its allocations, of which the one that until_it_fails counts down to fails.
#include <errno.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
static int until_it_fails;  // 0: none does

static int fails(void) {
  if (until_it_fails == 0 || --until_it_fails != 0) return 0;
  errno = ENOMEM;
  return 1;
}
void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t each) { return fails() ? NULL : __libc_calloc(n, each); }
void* realloc(void* at, size_t n) { return fails() ? NULL : __libc_realloc(at, n); }
