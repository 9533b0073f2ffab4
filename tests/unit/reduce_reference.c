#include "unit/reduce_reference.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "reduce/kernels.h"

#ifdef __FLT16_MAX__
typedef _Float16 f16;
#endif
#ifdef __SIZEOF_FLOAT128__
typedef __float128 f128;
#endif
typedef float _Complex c32;
typedef double _Complex c64;
typedef long double _Complex clong;

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

static uint64_t next(unsigned long* seed) {
  uint64_t x = *seed += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* `volatile` keeps the compiler from making vectors of the loop that vectors are compared with. */
#define EACH(T, expression)                        \
  {                                                \
    for (size_t i = 0; i < count; ++i) {           \
      volatile T a, b, c;                          \
      T result;                                    \
      memcpy((T*)&a, x + i * sizeof a, sizeof a);  \
      memcpy((T*)&b, y + i * sizeof b, sizeof b);  \
      result = (T)(expression);                    \
      c = result;                                  \
      result = c;                                  \
      memcpy(x + i * sizeof c, &result, sizeof c); \
    }                                              \
    return 1;                                      \
  }

#define INTEGER(T, U)                                                   \
  static int T##_reduce(int op, char* x, const char* y, size_t count) { \
    switch (op) {                                                       \
      case ULFM_OP_MAX: EACH(T, MAX(a, b))                              \
      case ULFM_OP_MIN: EACH(T, MIN(a, b))                              \
      case ULFM_OP_SUM: EACH(T, (U)a + (U)b)                            \
      case ULFM_OP_PROD: EACH(T, (uint64_t)a*(uint64_t)b)               \
      case ULFM_OP_LAND: EACH(T, a&& b)                                 \
      case ULFM_OP_LOR: EACH(T, a || b)                                 \
      case ULFM_OP_LXOR: EACH(T, (a && !b) || (!a && b))                \
      case ULFM_OP_BAND: EACH(T, a& b)                                  \
      case ULFM_OP_BOR: EACH(T, a | b)                                  \
      case ULFM_OP_BXOR: EACH(T, a ^ b)                                 \
      default: return 0;                                                \
    }                                                                   \
  }
INTEGER(int8_t, uint8_t)
INTEGER(int16_t, uint16_t)
INTEGER(int32_t, uint32_t)
INTEGER(int64_t, uint64_t)
INTEGER(uint8_t, uint8_t)
INTEGER(uint16_t, uint16_t)
INTEGER(uint32_t, uint32_t)
INTEGER(uint64_t, uint64_t)

#define REAL(name, T)                                                      \
  static int name##_reduce(int op, char* x, const char* y, size_t count) { \
    switch (op) {                                                          \
      case ULFM_OP_MAX: EACH(T, MAX(a, b))                                 \
      case ULFM_OP_MIN: EACH(T, MIN(a, b))                                 \
      case ULFM_OP_SUM: EACH(T, a + b)                                     \
      case ULFM_OP_PROD: EACH(T, a* b)                                     \
      default: return 0;                                                   \
    }                                                                      \
  }
#ifdef __FLT16_MAX__
REAL(f16, f16)
#endif
#ifdef __SIZEOF_FLOAT128__
REAL(f128, f128)
#endif
REAL(f32, float)
REAL(f64, double)
REAL(flong, long double)

static int bool_reduce(int op, char* x, const char* y, size_t count) {
  switch (op) {
    case ULFM_OP_LAND: EACH(_Bool, a && b)
    case ULFM_OP_LOR: EACH(_Bool, a || b)
    case ULFM_OP_LXOR: EACH(_Bool, (a && !b) || (!a && b))
    default: return 0;
  }
}

#define COMPLEX(C)                                                      \
  static int C##_reduce(int op, char* x, const char* y, size_t count) { \
    switch (op) {                                                       \
      case ULFM_OP_SUM: EACH(C, a + b)                                  \
      case ULFM_OP_PROD: EACH(C, a* b)                                  \
      default: return 0;                                                \
    }                                                                   \
  }
COMPLEX(c32)
COMPLEX(c64)
COMPLEX(clong)

#define PLAIN(name, T)                                                               \
  typedef struct {                                                                   \
    T re, im;                                                                        \
  } name;                                                                            \
  static int name##_reduce(int op, char* x, const char* y, size_t count) {           \
    for (size_t i = 0; i < count; ++i) {                                             \
      name a, b, c;                                                                  \
      memcpy(&a, x + i * sizeof a, sizeof a);                                        \
      memcpy(&b, y + i * sizeof b, sizeof b);                                        \
      volatile T p = a.re * b.re, q = a.im * b.im, r = a.im * b.re, s = a.re * b.im; \
      if (op == ULFM_OP_SUM) c = (name){a.re + b.re, a.im + b.im};                   \
      else if (op == ULFM_OP_PROD) c = (name){p - q, r + s};                         \
      else return 0;                                                                 \
      memcpy(x + i * sizeof c, &c, sizeof c);                                        \
    }                                                                                \
    return op == ULFM_OP_SUM || op == ULFM_OP_PROD;                                  \
  }
PLAIN(x32, float)
PLAIN(x64, double)
PLAIN(xlong, long double)

#define PAIR(P, V, L)                                                            \
  typedef struct {                                                               \
    V value;                                                                     \
    L place;                                                                     \
  } P;                                                                           \
  static int P##_reduce(int op, char* x, const char* y, size_t count) {          \
    for (size_t i = 0; i < count; ++i) {                                         \
      P a, b;                                                                    \
      memcpy(&a, x + i * sizeof a, sizeof a);                                    \
      memcpy(&b, y + i * sizeof b, sizeof b);                                    \
      if (op == ULFM_OP_MAXLOC ? a.value < b.value : a.value > b.value) a = b;   \
      else if (a.value == b.value) a.place = MIN(a.place, b.place);              \
      memcpy(x + i * sizeof a, &a, sizeof a);                                    \
    }                                                                            \
    return op == ULFM_OP_MAXLOC || op == ULFM_OP_MINLOC;                         \
  }                                                                              \
  static int P##_same(const char* x, const char* y) {                            \
    P a, b;                                                                      \
    memcpy(&a, x, sizeof a);                                                     \
    memcpy(&b, y, sizeof b);                                                     \
    return (a.value == b.value || (a.value != a.value && b.value != b.value)) && \
           (a.place == b.place || (a.place != a.place && b.place != b.place));   \
  }
PAIR(two_int, int, int)
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(short_int, short, int)
PAIR(flong_int, long double, int)
PAIR(two_float, float, float)
PAIR(two_double, double, double)

int reference_reduce(int op, int type, void* x, const void* y, size_t count) {
  switch (type) {
    case ULFM_TYPE_I8: return int8_t_reduce(op, x, y, count);
    case ULFM_TYPE_I16: return int16_t_reduce(op, x, y, count);
    case ULFM_TYPE_I32: return int32_t_reduce(op, x, y, count);
    case ULFM_TYPE_I64: return int64_t_reduce(op, x, y, count);
    case ULFM_TYPE_U8: return uint8_t_reduce(op, x, y, count);
    case ULFM_TYPE_U16: return uint16_t_reduce(op, x, y, count);
    case ULFM_TYPE_U32: return uint32_t_reduce(op, x, y, count);
    case ULFM_TYPE_U64: return uint64_t_reduce(op, x, y, count);
#ifdef __FLT16_MAX__
    case ULFM_TYPE_F16: return f16_reduce(op, x, y, count);
#endif
    case ULFM_TYPE_F32: return f32_reduce(op, x, y, count);
    case ULFM_TYPE_F64: return f64_reduce(op, x, y, count);
    case ULFM_TYPE_FLONG: return flong_reduce(op, x, y, count);
#ifdef __SIZEOF_FLOAT128__
    case ULFM_TYPE_F128: return f128_reduce(op, x, y, count);
#endif
    case ULFM_TYPE_C32: return c32_reduce(op, x, y, count);
    case ULFM_TYPE_C64: return c64_reduce(op, x, y, count);
    case ULFM_TYPE_CLONG: return clong_reduce(op, x, y, count);
    case ULFM_TYPE_X32: return x32_reduce(op, x, y, count);
    case ULFM_TYPE_X64: return x64_reduce(op, x, y, count);
    case ULFM_TYPE_XLONG: return xlong_reduce(op, x, y, count);
    case ULFM_TYPE_BOOL: return bool_reduce(op, x, y, count);
    case ULFM_TYPE_LOGICAL:
      return op == ULFM_OP_LAND || op == ULFM_OP_LOR || op == ULFM_OP_LXOR ? int32_t_reduce(op, x, y, count) : 0;
    case ULFM_TYPE_2INT: return two_int_reduce(op, x, y, count);
    case ULFM_TYPE_FLOAT_INT: return float_int_reduce(op, x, y, count);
    case ULFM_TYPE_DOUBLE_INT: return double_int_reduce(op, x, y, count);
    case ULFM_TYPE_LONG_INT: return long_int_reduce(op, x, y, count);
    case ULFM_TYPE_SHORT_INT: return short_int_reduce(op, x, y, count);
    case ULFM_TYPE_FLONG_INT: return flong_int_reduce(op, x, y, count);
    case ULFM_TYPE_2FLOAT: return two_float_reduce(op, x, y, count);
    case ULFM_TYPE_2DOUBLE: return two_double_reduce(op, x, y, count);
    default: return 0;
  }
}

static int same_real(size_t size, int nan_a, int nan_b, const void* a, const void* b) {
  return (nan_a && nan_b) || memcmp(a, b, size) == 0;
}

/* Parts of a number of `parts` reals; an x87 real has 10 bytes, the others are padding. */
#define SAME_REALS(T, parts, significant)                            \
  {                                                                  \
    for (size_t i = 0; i < (parts); ++i) {                           \
      T p, q;                                                        \
      memcpy(&p, (const char*)a + i * sizeof p, sizeof p);           \
      memcpy(&q, (const char*)b + i * sizeof q, sizeof q);           \
      if (!same_real(significant, p != p, q != q, &p, &q)) return 0; \
    }                                                                \
    return 1;                                                        \
  }
enum { kLongBytes = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double) };

int reference_same(int type, const void* a, const void* b) {
  switch (type) {
#ifdef __FLT16_MAX__
    case ULFM_TYPE_F16: SAME_REALS(f16, 1, 2)
#endif
#ifdef __SIZEOF_FLOAT128__
    case ULFM_TYPE_F128: SAME_REALS(f128, 1, 16)
#endif
    case ULFM_TYPE_F32: SAME_REALS(float, 1, 4)
    case ULFM_TYPE_F64: SAME_REALS(double, 1, 8)
    case ULFM_TYPE_FLONG: SAME_REALS(long double, 1, kLongBytes)
    case ULFM_TYPE_C32:
    case ULFM_TYPE_X32: SAME_REALS(float, 2, 4)
    case ULFM_TYPE_C64:
    case ULFM_TYPE_X64: SAME_REALS(double, 2, 8)
    case ULFM_TYPE_CLONG:
    case ULFM_TYPE_XLONG: SAME_REALS(long double, 2, kLongBytes)
    case ULFM_TYPE_2INT: return two_int_same(a, b);
    case ULFM_TYPE_FLOAT_INT: return float_int_same(a, b);
    case ULFM_TYPE_DOUBLE_INT: return double_int_same(a, b);
    case ULFM_TYPE_LONG_INT: return long_int_same(a, b);
    case ULFM_TYPE_SHORT_INT: return short_int_same(a, b);
    case ULFM_TYPE_FLONG_INT: return flong_int_same(a, b);
    case ULFM_TYPE_2FLOAT: return two_float_same(a, b);
    case ULFM_TYPE_2DOUBLE: return two_double_same(a, b);
    default: return memcmp(a, b, ulfm_reduce_extent(type)) == 0;
  }
}

static double corner(uint64_t random, double largest, double smallest) {
  const double corners[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, largest, -largest, smallest, 1.0, -1.5, 3.25};
  const size_t n = sizeof corners / sizeof *corners;
  return random % 4 ? (double)(int64_t)(random >> 20) / 1e9 : corners[(random >> 8) % n];
}

#define FILL_REALS(T, parts, largest, smallest)                         \
  {                                                                     \
    for (size_t i = 0; i < count * (parts); ++i) {                      \
      const T value = (T)corner(next(seed), largest, smallest);         \
      memcpy((char*)elements + i * sizeof value, &value, sizeof value); \
    }                                                                   \
    return;                                                             \
  }
/* Few values, so that ties and equal places occur. */
#define FILL_PAIRS(P, V)                                             \
  {                                                                  \
    for (size_t i = 0; i < count; ++i) {                             \
      const uint64_t random = next(seed);                            \
      P pair;                                                        \
      memset(&pair, 0, sizeof pair);                                 \
      pair.value = (V)((int)(random % 7) - 3);                       \
      if (random % 11 == 0 && (V)0.5 != 0) pair.value = (V)NAN;      \
      pair.place = (int)(random >> 40) % 5;                          \
      memcpy((char*)elements + i * sizeof pair, &pair, sizeof pair); \
    }                                                                \
    return;                                                          \
  }

void reference_fill(int type, void* elements, size_t count, unsigned long* seed) {
  switch (type) {
#ifdef __FLT16_MAX__
    case ULFM_TYPE_F16: FILL_REALS(f16, 1, 65504.0, 5.9604644775390625e-8)
#endif
#ifdef __SIZEOF_FLOAT128__
    case ULFM_TYPE_F128: FILL_REALS(f128, 1, DBL_MAX, DBL_TRUE_MIN)
#endif
    case ULFM_TYPE_F32: FILL_REALS(float, 1, FLT_MAX, FLT_TRUE_MIN)
    case ULFM_TYPE_F64: FILL_REALS(double, 1, DBL_MAX, DBL_TRUE_MIN)
    case ULFM_TYPE_FLONG: FILL_REALS(long double, 1, DBL_MAX, DBL_TRUE_MIN)
    case ULFM_TYPE_C32:
    case ULFM_TYPE_X32: FILL_REALS(float, 2, FLT_MAX, FLT_TRUE_MIN)
    case ULFM_TYPE_C64:
    case ULFM_TYPE_X64: FILL_REALS(double, 2, DBL_MAX, DBL_TRUE_MIN)
    case ULFM_TYPE_CLONG:
    case ULFM_TYPE_XLONG: FILL_REALS(long double, 2, DBL_MAX, DBL_TRUE_MIN)
    case ULFM_TYPE_2INT: FILL_PAIRS(two_int, int)
    case ULFM_TYPE_FLOAT_INT: FILL_PAIRS(float_int, float)
    case ULFM_TYPE_DOUBLE_INT: FILL_PAIRS(double_int, double)
    case ULFM_TYPE_LONG_INT: FILL_PAIRS(long_int, long)
    case ULFM_TYPE_SHORT_INT: FILL_PAIRS(short_int, short)
    case ULFM_TYPE_FLONG_INT: FILL_PAIRS(flong_int, long double)
    case ULFM_TYPE_2FLOAT: FILL_PAIRS(two_float, float)
    case ULFM_TYPE_2DOUBLE: FILL_PAIRS(two_double, double)
    default: break;
  }
  for (size_t i = 0; i < count * ulfm_reduce_extent(type); ++i) {
    const uint64_t random = next(seed);
    ((unsigned char*)elements)[i] = (unsigned char)(random % 3 == 0 ? 0 : random % 3 == 1 ? random >> 32 : 0x80);
    if (type == ULFM_TYPE_BOOL) ((unsigned char*)elements)[i] = random & 1;
  }
}
