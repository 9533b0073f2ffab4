#define ULFM_KERNELS ulfm_kernels_base
#include "reduce/kernels.inl"
