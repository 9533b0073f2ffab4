#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#ifdef ULFM_HAVE_ISAL
#include <isa-l/crc.h>
#endif

namespace ulfm {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1EDC6F41, bits in reverse

constexpr auto kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}();

std::uint32_t by_table(const std::byte* bytes, std::size_t size, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint8_t>(bytes[i])) & 0xff];
  return ~crc;
}

#ifdef __x86_64__
constexpr bool kMayHaveInstruction = true;

bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* bytes, std::size_t size,
                                                               std::uint32_t before) noexcept {
  std::uint64_t crc = ~before;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; size != 0; ++bytes, --size) rest = __builtin_ia32_crc32qi(rest, static_cast<std::uint8_t>(*bytes));
  return ~rest;
}
#else
constexpr bool kMayHaveInstruction = false;

bool has_instruction() noexcept { return false; }
constexpr auto by_instruction = by_table;
#endif

#ifdef ULFM_HAVE_ISAL
constexpr bool kHasIsal = true;

std::uint32_t by_isal(const std::byte* bytes, std::size_t size, std::uint32_t before) noexcept {
  // Its length is an int. It takes and gives the register, without the inversions of the RFC.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t crc = ~before;
  auto* at = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
  for (; size > kPiece; at += kPiece, size -= kPiece) crc = crc32_iscsi(at, static_cast<int>(kPiece), crc);
  return ~crc32_iscsi(at, static_cast<int>(size), crc);
}
#else
constexpr bool kHasIsal = false;
constexpr auto by_isal = by_table;
#endif

// isa-l works on several pieces of a long text at once. What it does to get there costs more than a short text itself,
// which the instruction alone does as well.
constexpr std::size_t kWorthIsal = 256;

}  // namespace

const Crc32cWay (&crc32c_ways() noexcept)[kCrc32cWays] {
  static const Crc32cWay ways[kCrc32cWays] = {{"isa-l", kHasIsal, by_isal},
                                              {"instruction", kMayHaveInstruction && has_instruction(), by_instruction},
                                              {"table", true, by_table}};
  return ways;
}

std::uint32_t crc32c(const std::byte* bytes, std::size_t size, std::uint32_t before) noexcept {
  static const bool instruction = kMayHaveInstruction && has_instruction();
  if (instruction && (!kHasIsal || size < kWorthIsal)) return by_instruction(bytes, size, before);
  return kHasIsal ? by_isal(bytes, size, before) : by_table(bytes, size, before);
}

}  // namespace ulfm
