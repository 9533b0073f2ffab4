/* Which level of the kernels this machine runs. */
#include "reduce/kernels.h"

extern const ulfm_kernel_table ulfm_kernels_base;
#ifdef ULFM_REDUCE_LEVELS
extern const ulfm_kernel_table ulfm_kernels_v3, ulfm_kernels_v4;
static int has_v3(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
static int has_v4(void) {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

enum { kLevels = 3 };

const char* ulfm_reduce_level_name(int level) {
#ifdef __x86_64__
  static const char* const names[kLevels] = {"x86-64", "x86-64-v3", "x86-64-v4"};
#else
  static const char* const names[kLevels] = {"baseline", NULL, NULL};
#endif
  return level >= 0 && level < kLevels ? names[level] : NULL;
}

const ulfm_kernel_table* ulfm_reduce_level(int level) {
  if (level == 0) return &ulfm_kernels_base;
#ifdef ULFM_REDUCE_LEVELS
  if (level == 1 && has_v3()) return &ulfm_kernels_v3;
  if (level == 2 && has_v4()) return &ulfm_kernels_v4;
#endif
  return NULL;
}

ulfm_kernel ulfm_reduce_kernel(int op, int type) {
  static const ulfm_kernel_table* chosen; /* two threads may both choose, and choose the same */
  const ulfm_kernel_table* table = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (op < 0 || op >= ULFM_OP_COUNT || type < 0 || type >= ULFM_TYPE_COUNT) return NULL;
  for (int level = kLevels - 1; !table; --level) table = ulfm_reduce_level(level);
  __atomic_store_n(&chosen, table, __ATOMIC_RELAXED);
  return (*table)[op][type];
}

size_t ulfm_reduce_extent(int type) {
  struct float_int {
    float value;
    int place;
  };
  struct double_int {
    double value;
    int place;
  };
  struct long_int {
    long value;
    int place;
  };
  struct short_int {
    short value;
    int place;
  };
  struct flong_int {
    long double value;
    int place;
  };
  static const size_t extents[ULFM_TYPE_COUNT] = {[ULFM_TYPE_I8] = 1,
                                                  [ULFM_TYPE_I16] = 2,
                                                  [ULFM_TYPE_I32] = 4,
                                                  [ULFM_TYPE_I64] = 8,
                                                  [ULFM_TYPE_U8] = 1,
                                                  [ULFM_TYPE_U16] = 2,
                                                  [ULFM_TYPE_U32] = 4,
                                                  [ULFM_TYPE_U64] = 8,
                                                  [ULFM_TYPE_F16] = 2,
                                                  [ULFM_TYPE_F32] = 4,
                                                  [ULFM_TYPE_F64] = 8,
                                                  [ULFM_TYPE_FLONG] = sizeof(long double),
                                                  [ULFM_TYPE_F128] = 16,
                                                  [ULFM_TYPE_C32] = 8,
                                                  [ULFM_TYPE_C64] = 16,
                                                  [ULFM_TYPE_CLONG] = 2 * sizeof(long double),
                                                  [ULFM_TYPE_X32] = 8,
                                                  [ULFM_TYPE_X64] = 16,
                                                  [ULFM_TYPE_XLONG] = 2 * sizeof(long double),
                                                  [ULFM_TYPE_BOOL] = sizeof(_Bool),
                                                  [ULFM_TYPE_LOGICAL] = 4,
                                                  [ULFM_TYPE_2INT] = 2 * sizeof(int),
                                                  [ULFM_TYPE_FLOAT_INT] = sizeof(struct float_int),
                                                  [ULFM_TYPE_DOUBLE_INT] = sizeof(struct double_int),
                                                  [ULFM_TYPE_LONG_INT] = sizeof(struct long_int),
                                                  [ULFM_TYPE_SHORT_INT] = sizeof(struct short_int),
                                                  [ULFM_TYPE_FLONG_INT] = sizeof(struct flong_int),
                                                  [ULFM_TYPE_2FLOAT] = 8,
                                                  [ULFM_TYPE_2DOUBLE] = 16};
  return type >= 0 && type < ULFM_TYPE_COUNT ? extents[type] : 0;
}
