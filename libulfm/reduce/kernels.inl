/* The kernels of one level. Included by one file for each level, which sets ULFM_KERNELS to the table's name and is
 * compiled for that level's instructions: all that is defined here is therefore static.
 *
 * The element types allow any alignment and alias anything: callers hand over bytes. */
#include <stddef.h>
#include <stdint.h>

#include "reduce/kernels.h"

#define LOOSE __attribute__((aligned(1), may_alias))

typedef int8_t i8 LOOSE;
typedef int16_t i16 LOOSE;
typedef int32_t i32 LOOSE;
typedef int64_t i64 LOOSE;
typedef uint8_t u8 LOOSE;
typedef uint16_t u16 LOOSE;
typedef uint32_t u32 LOOSE;
typedef uint64_t u64 LOOSE;
typedef float f32 LOOSE;
typedef double f64 LOOSE;
typedef long double flong LOOSE;
typedef _Bool boolean LOOSE;
#ifdef __FLT16_MAX__
typedef _Float16 f16 LOOSE;
#endif
#ifdef __SIZEOF_FLOAT128__
typedef __float128 f128 LOOSE;
#endif

#define KERNEL(name, T, expression)                             \
  static void name(void* inout, const void* in, size_t count) { \
    T* x = inout;                                               \
    const T* y = in;                                            \
    for (size_t i = 0; i < count; ++i) {                        \
      const T a = x[i], b = y[i];                               \
      x[i] = (expression);                                      \
    }                                                           \
  }

#define MAXIMUM (a > b ? a : b)
#define MINIMUM (a < b ? a : b)

/* Signed integers wrap around. */
#define INTEGERS(T, U)                          \
  KERNEL(sum_##T, T, (T)((U)a + (U)b))          \
  KERNEL(max_##T, T, MAXIMUM)                   \
  KERNEL(min_##T, T, MINIMUM)                   \
  KERNEL(land_##T, T, (T)((a != 0) & (b != 0))) \
  KERNEL(lor_##T, T, (T)((a != 0) | (b != 0)))  \
  KERNEL(lxor_##T, T, (T)((a != 0) ^ (b != 0))) \
  KERNEL(band_##T, T, (T)(a & b))               \
  KERNEL(bor_##T, T, (T)(a | b))                \
  KERNEL(bxor_##T, T, (T)(a ^ b))               \
  KERNEL(prod_##T, T, (T)(1u * (U)a * (U)b))
INTEGERS(i8, u8)
INTEGERS(i16, u16)
INTEGERS(i32, u32)
INTEGERS(i64, u64)
INTEGERS(u8, u8)
INTEGERS(u16, u16)
INTEGERS(u32, u32)
INTEGERS(u64, u64)

#define REALS(T)              \
  KERNEL(sum_##T, T, a + b)   \
  KERNEL(prod_##T, T, a* b)   \
  KERNEL(max_##T, T, MAXIMUM) \
  KERNEL(min_##T, T, MINIMUM)
#ifdef __FLT16_MAX__
REALS(f16)
#endif
REALS(f32)
REALS(f64)
REALS(flong)
#ifdef __SIZEOF_FLOAT128__
REALS(f128)
#endif

KERNEL(land_boolean, boolean, (a & b) != 0)
KERNEL(lor_boolean, boolean, (a | b) != 0)
KERNEL(lxor_boolean, boolean, (a ^ b) != 0)

/* A complex number is two reals in a row, so a sum of n is a sum of 2n reals. */
#define COMPLEX_SUM(name, part) \
  static void name(void* inout, const void* in, size_t count) { sum_##part(inout, in, 2 * count); }
COMPLEX_SUM(sum_complex_f32, f32)
COMPLEX_SUM(sum_complex_f64, f64)
COMPLEX_SUM(sum_complex_flong, flong)

/* Products first, sums then: in one loop GCC 12 contracts them (vfmaddsub) although it is told not to. Blocks, so that
 * the products stay in the first cache. */
enum { kBlock = 64 };
#define PLAIN_PRODUCT(T)                                                     \
  static void plain_product_##T(void* inout, const void* in, size_t count) { \
    T* x = inout;                                                            \
    const T* y = in;                                                         \
    T first[2 * kBlock], second[2 * kBlock];                                 \
    for (size_t n; count > 0; count -= n, x += 2 * n, y += 2 * n) {          \
      n = count < kBlock ? count : kBlock;                                   \
      for (size_t i = 0; i < n; ++i) {                                       \
        first[2 * i] = x[2 * i] * y[2 * i];                                  \
        first[2 * i + 1] = x[2 * i + 1] * y[2 * i];                          \
        second[2 * i] = x[2 * i + 1] * y[2 * i + 1];                         \
        second[2 * i + 1] = x[2 * i] * y[2 * i + 1];                         \
      }                                                                      \
      __asm__("" : "+m"(first), "+m"(second));                               \
      for (size_t i = 0; i < n; ++i) {                                       \
        x[2 * i] = first[2 * i] - second[2 * i];                             \
        x[2 * i + 1] = first[2 * i + 1] + second[2 * i + 1];                 \
      }                                                                      \
    }                                                                        \
  }
PLAIN_PRODUCT(f32)
PLAIN_PRODUCT(f64)
PLAIN_PRODUCT(flong)

/* The plain formula, and where both parts became NaN C99's rules (annex G), which the compiler's own product follows. */
#define C99_PRODUCT(T, C)                                                                       \
  static void c99_product_##T(void* inout, const void* in, size_t count) {                      \
    char* x = inout;                                                                            \
    const char* y = in;                                                                         \
    while (count > 0) {                                                                         \
      const size_t n = count < kBlock ? count : kBlock;                                         \
      T product[2 * kBlock];                                                                    \
      int nan = 0;                                                                              \
      __builtin_memcpy(product, x, n * 2 * sizeof(T));                                          \
      plain_product_##T(product, y, n);                                                         \
      for (size_t i = 0; i < n; ++i)                                                            \
        nan |= (product[2 * i] != product[2 * i]) & (product[2 * i + 1] != product[2 * i + 1]); \
      for (size_t i = 0; nan && i < n; ++i) {                                                   \
        C a, b;                                                                                 \
        __builtin_memcpy(&a, x + i * sizeof a, sizeof a);                                       \
        __builtin_memcpy(&b, y + i * sizeof b, sizeof b);                                       \
        a *= b;                                                                                 \
        __builtin_memcpy(product + 2 * i, &a, sizeof a);                                        \
      }                                                                                         \
      __builtin_memcpy(x, product, n * 2 * sizeof(T));                                          \
      x += n * 2 * sizeof(T);                                                                   \
      y += n * 2 * sizeof(T);                                                                   \
      count -= n;                                                                               \
    }                                                                                           \
  }
C99_PRODUCT(f32, float _Complex)
C99_PRODUCT(f64, double _Complex)
C99_PRODUCT(flong, long double _Complex)

/* Of equal values the lower location; with a NaN nothing changes. The steps are between values and between places. */
#define LOCATION(name, P, V, L, before)                                      \
  static void name(void* inout, const void* in, size_t count) {              \
    enum { kValue = sizeof(P) / sizeof(V), kPlace = sizeof(P) / sizeof(L) }; \
    V* value = inout;                                                        \
    const V* value_in = in;                                                  \
    L* place = (L*)((char*)inout + offsetof(P, place));                      \
    const L* place_in = (const L*)((const char*)in + offsetof(P, place));    \
    for (size_t i = 0; i < count; ++i) {                                     \
      const V a = value[kValue * i], b = value_in[kValue * i];               \
      const L at = place[kPlace * i], other = place_in[kPlace * i];          \
      const int wins = b before a, ties = b == a;                            \
      place[kPlace * i] = (wins | (ties & (other < at))) ? other : at;       \
      value[kValue * i] = wins ? b : a;                                      \
    }                                                                        \
  }
#define LOCATIONS(P, V, L)                         \
  typedef V P##_value LOOSE;                       \
  typedef L P##_place LOOSE;                       \
  typedef struct P {                               \
    V value;                                       \
    L place;                                       \
  } P;                                             \
  LOCATION(maxloc_##P, P, P##_value, P##_place, >) \
  LOCATION(minloc_##P, P, P##_value, P##_place, <)
LOCATIONS(two_int, int, int)
LOCATIONS(float_int, float, int)
LOCATIONS(double_int, double, int)
LOCATIONS(long_int, long, int)
LOCATIONS(short_int, short, int)
LOCATIONS(flong_int, long double, int)
LOCATIONS(two_float, float, float)
LOCATIONS(two_double, double, double)

#define INTEGER_ROWS(op, OP)                                                                                        \
  [ULFM_OP_##OP] = {                                                                                                \
      [ULFM_TYPE_I8] = op##_i8, [ULFM_TYPE_I16] = op##_i16, [ULFM_TYPE_I32] = op##_i32, [ULFM_TYPE_I64] = op##_i64, \
      [ULFM_TYPE_U8] = op##_u8, [ULFM_TYPE_U16] = op##_u16, [ULFM_TYPE_U32] = op##_u32, [ULFM_TYPE_U64] = op##_u64}
#define LOGICAL_ROWS(op, OP)                                                                                    \
  [ULFM_OP_##OP] = {[ULFM_TYPE_I8] = op##_i8,       [ULFM_TYPE_I16] = op##_i16, [ULFM_TYPE_I32] = op##_i32,     \
                    [ULFM_TYPE_I64] = op##_i64,     [ULFM_TYPE_U8] = op##_u8,   [ULFM_TYPE_U16] = op##_u16,     \
                    [ULFM_TYPE_U32] = op##_u32,     [ULFM_TYPE_U64] = op##_u64, [ULFM_TYPE_LOGICAL] = op##_i32, \
                    [ULFM_TYPE_BOOL] = op##_boolean}
#ifdef __FLT16_MAX__
#define HALF(op) [ULFM_TYPE_F16] = op##_f16,
#else
#define HALF(op)
#endif
#ifdef __SIZEOF_FLOAT128__
#define QUAD(op) [ULFM_TYPE_F128] = op##_f128,
#else
#define QUAD(op)
#endif
#define NUMBERS(op)                                                                                             \
  [ULFM_TYPE_I8] = op##_i8, [ULFM_TYPE_I16] = op##_i16, [ULFM_TYPE_I32] = op##_i32, [ULFM_TYPE_I64] = op##_i64, \
  [ULFM_TYPE_U8] = op##_u8, [ULFM_TYPE_U16] = op##_u16, [ULFM_TYPE_U32] = op##_u32, [ULFM_TYPE_U64] = op##_u64, \
  HALF(op) QUAD(op)[ULFM_TYPE_F32] = op##_f32, [ULFM_TYPE_F64] = op##_f64, [ULFM_TYPE_FLONG] = op##_flong
#define PAIRS(op)                                                                                                    \
  [ULFM_TYPE_2INT] = op##_two_int, [ULFM_TYPE_FLOAT_INT] = op##_float_int, [ULFM_TYPE_DOUBLE_INT] = op##_double_int, \
  [ULFM_TYPE_LONG_INT] = op##_long_int, [ULFM_TYPE_SHORT_INT] = op##_short_int,                                      \
  [ULFM_TYPE_FLONG_INT] = op##_flong_int, [ULFM_TYPE_2FLOAT] = op##_two_float, [ULFM_TYPE_2DOUBLE] = op##_two_double

const ulfm_kernel_table ULFM_KERNELS = {
    [ULFM_OP_MAX] = {NUMBERS(max)},
    [ULFM_OP_MIN] = {NUMBERS(min)},
    [ULFM_OP_SUM] = {NUMBERS(sum), [ULFM_TYPE_C32] = sum_complex_f32, [ULFM_TYPE_C64] = sum_complex_f64,
                     [ULFM_TYPE_CLONG] = sum_complex_flong, [ULFM_TYPE_X32] = sum_complex_f32,
                     [ULFM_TYPE_X64] = sum_complex_f64, [ULFM_TYPE_XLONG] = sum_complex_flong},
    [ULFM_OP_PROD] = {NUMBERS(prod), [ULFM_TYPE_C32] = c99_product_f32, [ULFM_TYPE_C64] = c99_product_f64,
                      [ULFM_TYPE_CLONG] = c99_product_flong, [ULFM_TYPE_X32] = plain_product_f32,
                      [ULFM_TYPE_X64] = plain_product_f64, [ULFM_TYPE_XLONG] = plain_product_flong},
    LOGICAL_ROWS(land, LAND),
    LOGICAL_ROWS(lor, LOR),
    LOGICAL_ROWS(lxor, LXOR),
    INTEGER_ROWS(band, BAND),
    INTEGER_ROWS(bor, BOR),
    INTEGER_ROWS(bxor, BXOR),
    [ULFM_OP_MINLOC] = {PAIRS(minloc)},
    [ULFM_OP_MAXLOC] = {PAIRS(maxloc)},
};
