/* Reduction kernels: the predefined operations of MPI on its predefined types, element by element.
 *
 * Every kernel exists once for each level of the processor's vector instructions; the compiler makes the vectors. The
 * level is chosen once. The results are those of a plain loop, to the bit, whatever the level: nothing is reordered,
 * nothing is contracted, and a NaN is treated as the plain loop treats it (its payload is not specified). */
#ifndef ULFM_REDUCE_KERNELS_H
#define ULFM_REDUCE_KERNELS_H

#include <stddef.h>
#include <ulfm/netmod.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef ulfm_kernel ulfm_kernel_table[ULFM_OP_COUNT][ULFM_TYPE_COUNT];

/* The kernel for this machine; NULL when the operation is not defined on the type. Any thread. */
ulfm_kernel ulfm_reduce_kernel(int op, int type);

/* The kernels of one level, 0 the plainest; NULL when there is no such level or this machine lacks it. */
const ulfm_kernel_table* ulfm_reduce_level(int level);
/* Its name, for example x86-64-v3; NULL when there is no such level. */
const char* ulfm_reduce_level_name(int level);
/* Bytes from one element of the type to the next; 0 when there is no such type. */
size_t ulfm_reduce_extent(int type);

#ifdef __cplusplus
}
#endif
#endif
