/* Wrong arguments: every underscore form returns -1 with its number. With a number as argument the program makes that
 * mistake in a plain form, which prints the phrase and ends the job. */
#include "check.h"

static void nothing(long type, long count, long node, long ptype) { (void)type, (void)count, (void)node, (void)ptype; }

static void underscored(void) {
  char buffer[8];
  long info[8], mid;
  CHECK_ERROR(EQTYPE, _csend(-1, buffer, 8, 0, 0));
  CHECK_ERROR(EQTYPE, _csend(1000000000, buffer, 8, 0, 0));
  CHECK_ERROR(EQTYPE, _csend(2000000000, buffer, 8, 0, 0));
  CHECK_ERROR(EQTYPE, _isend(FORCE_TYPE - 1, buffer, 8, 0, 0));
  CHECK_ERROR(EQNODE, _csend(1, buffer, 8, numnodes() + 5, 0));
  CHECK_ERROR(EQNODE, _csend(1, buffer, 8, -2, 0));
  CHECK_ERROR(EQNODE, _csend(1, buffer, 8, myhost(), 0)); /* this job has no host */
  CHECK_ERROR(EQPID, _csend(1, buffer, 8, 0, -2));
  CHECK_ERROR(EQLEN, _csend(1, buffer, -1, 0, 0));
  CHECK_ERROR(EQPBUF, _csend(1, NULL, 8, 0, 0));
  CHECK_ERROR(EQLEN, _crecv(1, buffer, -8));
  CHECK_ERROR(EQPBUF, _irecv(1, NULL, 8));
  CHECK_ERROR(EQLEN, _crecvx(1, buffer, -8, 0, 0, info));
  CHECK_ERROR(EQPBUF, _irecvx(1, NULL, 8, 0, 0, info));
  CHECK_ERROR(EQTYPE, _csendrecv(-5, buffer, 8, 0, 0, 1, buffer, 8));
  CHECK_ERROR(EQLEN, _csendrecv(1, buffer, 8, 0, 0, 1, buffer, -8));
  CHECK_ERROR(EQNODE, _isendrecv(1, buffer, 8, 99999, 0, 1, buffer, 8));
  CHECK_ERROR(EQHND, _hrecv(1, buffer, 8, NULL));
  CHECK_ERROR(EQHND, _hsend(1, buffer, 8, 0, 0, NULL));
  CHECK_ERROR(EQLEN, _hrecvx(1, buffer, -8, 0, 0, (nx_xhandler)nothing, 0));
  CHECK_ERROR(EQNODE, _hsendrecv(1, buffer, 8, 99999, 0, 1, buffer, 8, (nx_handler)nothing));
  CHECK_ERROR(EQPARAM, _gsendx(1, buffer, 8, NULL, 1));
  CHECK_ERROR(EQMID, _msgwait(0));
  CHECK_ERROR(EQMID, _msgdone(-3));
  CHECK_ERROR(EQMID, _msgcancel(100000));
  CHECK_ERROR(EQMID, _msgignore(7));
  CHECK_ERROR(EQMID, _msgmerge(7, 8));
  CHECK_ERROR(EQPARAM, _masktrap(2));
  CHECK_ERROR(EQPID, _setptype(-1));
  CHECK_ERROR(EQPBUF, _hwclock(NULL));
  CHECK_ERROR(EQLEN, _gdsum(NULL, -1, NULL));
  CHECK_ERROR(EQPBUF, _gisum(NULL, 1, NULL));
  CHECK_ERROR(EQPARAM, _gopf(buffer, 8, buffer, NULL));
  CHECK_ERROR(EQPARAM, _gopen("/dev/null", 0, M_LOG, 0));
  CHECK_ERROR(ENOENT, _gopen("/no/such/file", 0, M_UNIX, 0));
  CHECK_ERROR(EQPRIV, _getcube("c", "d2", NULL, 0));
  CHECK_ERROR(EQPRIV, _load("node", -1, 0));
  CHECK_ERROR(EQPRIV, _nx_initve(NULL, 4, NULL, NULL, NULL));
  /* A message that is too long, short or long, is an error where its receive completes. */
  csend(1, "12345678", 8, mynode(), 0);
  CHECK_ERROR(EQMSGLONG, _crecv(1, buffer, 4));
  static char large[100000], small[50000];
  const long other = (mynode() + 1) % numnodes();
  csend(2, large, sizeof large, other, 0);
  CHECK_ERROR(EQMSGLONG, _crecv(2, small, sizeof small));
  mid = irecv(3, small, sizeof small);
  gsync();
  csend(3, large, sizeof large, other, 0);
  CHECK_ERROR(EQMSGLONG, _msgwait(mid));
  CHECK_ERROR(EQMID, _msgwait(mid));
  /* Good calls return 0, or what they return. */
  CHECK(_csend(4, buffer, 8, mynode(), 0) == 0 && _iprobe(4) == 1 && _crecv(4, buffer, 8) == 0);
  CHECK(_gsync() == 0 && _mynode() == mynode() && _flick() == 0 && _led(1) == 0);
  /* Ids are limited, and each can be used again. */
  static long ids[10000];
  int count = 0;
  while (count < 10000 && (ids[count] = _irecv(5, buffer, 8)) >= 0) count++;
  CHECK(count > 200 && count < 10000 && errno == EQNOMID);
  for (int i = 0; i < count; i++) msgcancel(ids[i]);
  CHECK(_irecv(5, buffer, 8) >= 0);
  errno = EQMSGLONG;
  nx_perror("spoken");
}

static void plain(int which) {
  char buffer[8] = {0};
  switch (which) {
    case 1:
      csend(1, buffer, 8, mynode(), 0);
      crecv(1, buffer, 4);
      break;
    case 2: csend(1, buffer, 8, 12345, 0); break;
    case 3: msgwait(77); break;
    case 4: csend(-7, buffer, 8, 0, 0); break;
    default: return;
  }
  puts("still there");
}

int main(int argc, char** argv) {
  if (argc > 1) {
    plain(atoi(argv[1]));
    return 0;
  }
  underscored();
  return verdict("errors");
}
