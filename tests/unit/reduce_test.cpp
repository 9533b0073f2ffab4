// Every kernel of every level beside the plain loop.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "reduce/kernels.h"
#include "unit/reduce_reference.h"

namespace {

constexpr std::size_t kMost = 1031;
constexpr unsigned char kGuard = 0xa5;

// One call at an address that is `shift` bytes off, with bytes behind it that must stay.
void compare(ulfm_kernel kernel, int op, int type, std::size_t count, std::size_t shift, unsigned long& seed) {
  const std::size_t extent = ulfm_reduce_extent(type), bytes = count * extent;
  std::vector<unsigned char> in(bytes + shift), out(bytes + shift + 64, kGuard), expected;
  reference_fill(type, in.data() + shift, count, &seed);
  reference_fill(type, out.data() + shift, count, &seed);
  expected.assign(out.begin() + static_cast<std::ptrdiff_t>(shift), out.end());
  reference_reduce(op, type, expected.data(), in.data() + shift, count);
  kernel(out.data() + shift, in.data() + shift, count);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += reference_same(type, out.data() + shift + i * extent, expected.data() + i * extent) ? 0 : 1;
  for (std::size_t i = bytes; i < bytes + 64; ++i) wrong += out[shift + i] == kGuard ? 0 : 1;
  CAPTURE(op, type, count, shift);
  REQUIRE(wrong == 0);
}

}  // namespace

TEST_CASE("every operation on every type gives the plain loop's bits, at every level", "[reduce]") {
  unsigned long seed = 42;
  for (int level = 0; ulfm_reduce_level_name(level) != nullptr; ++level) {
    const ulfm_kernel_table* table = ulfm_reduce_level(level);
    if (table == nullptr) continue;
    CAPTURE(ulfm_reduce_level_name(level));
    for (int op = 0; op < ULFM_OP_COUNT; ++op)
      for (int type = 0; type < ULFM_TYPE_COUNT; ++type) {
        const ulfm_kernel kernel = (*table)[op][type];
        CAPTURE(op, type);
        alignas(16) unsigned char a[64] = {}, b[64] = {};
        REQUIRE((kernel != nullptr) == (reference_reduce(op, type, a, b, 1) != 0));
        if (kernel == nullptr) continue;
        for (std::size_t count = 0; count <= 70; ++count) compare(kernel, op, type, count, count % 5, seed);
        for (const std::size_t shift : {0u, 1u, 3u, 16u}) compare(kernel, op, type, kMost, shift, seed);
      }
  }
}

TEST_CASE("an array may be reduced with itself", "[reduce]") {
  std::vector<int> x(100, 7);
  ulfm_reduce_kernel(ULFM_OP_SUM, ULFM_TYPE_I32)(x.data(), x.data(), x.size());
  REQUIRE(x == std::vector<int>(100, 14));
}

TEST_CASE("there is no kernel for what is not defined", "[reduce]") {
  REQUIRE(ulfm_reduce_kernel(ULFM_OP_BAND, ULFM_TYPE_F64) == nullptr);
  REQUIRE(ulfm_reduce_kernel(ULFM_OP_SUM, ULFM_TYPE_2INT) == nullptr);
  REQUIRE(ulfm_reduce_kernel(-1, ULFM_TYPE_I32) == nullptr);
  REQUIRE(ulfm_reduce_kernel(ULFM_OP_COUNT, ULFM_TYPE_I32) == nullptr);
  REQUIRE(ulfm_reduce_kernel(ULFM_OP_SUM, ULFM_TYPE_COUNT) == nullptr);
  REQUIRE(ulfm_reduce_extent(ULFM_TYPE_COUNT) == 0);
  REQUIRE(ulfm_reduce_level(-1) == nullptr);
}
