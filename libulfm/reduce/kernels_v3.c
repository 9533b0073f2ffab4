#define ULFM_KERNELS ulfm_kernels_v3
#include "reduce/kernels.inl"
