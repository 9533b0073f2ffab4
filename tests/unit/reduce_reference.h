/* The predefined operations as plain loops, one element at a time, written as MPICH writes them (mpir_op_util.h). */
#ifndef REDUCE_REFERENCE_H
#define REDUCE_REFERENCE_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
/* inout = inout OP in; 0 when the operation is not defined on the type. */
int reference_reduce(int op, int type, void* inout, const void* in, size_t count);
/* Fills n elements: random, and the values at which arithmetic has its corners. */
void reference_fill(int type, void* elements, size_t count, unsigned long* seed);
/* Whether two elements are the same to the bit; any two NaNs are, and padding is not looked at. */
int reference_same(int type, const void* a, const void* b);
#ifdef __cplusplus
}
#endif
#endif
