/* The shortest way to deal with an error: say it and stop. */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>
#include <ulfm/ulfm.h>

/* For every function of the C interface: negative is an error, anything else its result. */
static inline int must(int result) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", ulfm_error_name(result), ulfm_last_error());
  exit(1);
}

#endif
