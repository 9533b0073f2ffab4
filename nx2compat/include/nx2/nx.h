/* NX/2 and NX: what programs for the iPSC/2, the iPSC/860, the Touchstone Delta and the Paragon include.
 *
 * Old programs were written for machines where long and int had 32 bits. Scalars are no problem here. A program that
 * mixes the two in arrays (a gisum() over int, a message of 4 bytes from a long) is compiled with -DNX_LONG_IS_INT: the
 * calls then work on int where they work on long otherwise. */
#ifndef NX2_NX_H
#define NX2_NX_H

#ifdef NX_LONG_IS_INT
#define nx_long int
#define msginfo msginfo_
#else
#define nx_long long
#endif

#ifdef __cplusplus
extern "C" {
/* Arguments: type, count, node, ptype; and hparam. */
typedef void (*nx_handler)(long, long, long, long);
typedef void (*nx_xhandler)(long, long, long, long, long);
/* Combines its second argument into its first. */
typedef long (*nx_combiner)();
#else
/* Without prototypes: programs declare the arguments as int or as long. */
typedef void (*nx_handler)();
typedef void (*nx_xhandler)();
typedef long (*nx_combiner)();
#endif

/* 64-bit number of hwclock(). */
typedef struct esize_t {
  unsigned int slow;
  int shigh;
} esize_t;
#define HWHZ 10000000

#define HOST myhost()
#define INVALID_PTYPE (-1)
#define FORCE_TYPE 0x40000000

/* Modes of gopen(). */
#define M_UNIX 0
#define M_LOG 1
#define M_SYNC 2
#define M_RECORD 3
#define M_GLOBAL 4
#define M_ASYNC 5

/* Error numbers. */
#define EQPBUF 151
#define EQBLEN 152
#define EQLEN 153
#define EQTIME 154
#define EQMSGLONG 155
#define EQPID 156
#define EQNODE 157
#define EQTYPE 158
#define EQMID 159
#define EQHND 160
#define EQNOPROC 161
#define EQUSEPID 162
#define EQNOACT 163
#define EQPARAM 165
#define EQPRIV 170
#define EQMEM 171
#define EQNOMID 174
#define EQSET 175
#define EQNOSET 176
#define EQMSGSHORT 202

/* About the last message: type, count, node, ptype, and four for the system. */
extern nx_long msginfo[8];

#include "nx2_calls.h"

#ifdef __cplusplus
}
#endif
#endif
