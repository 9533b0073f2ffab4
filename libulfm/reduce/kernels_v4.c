#define ULFM_KERNELS ulfm_kernels_v4
#include "reduce/kernels.inl"
