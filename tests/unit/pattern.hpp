// Bytes that say which message they belong to and where in it they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace test {

inline std::byte pattern(std::uint32_t seed, std::size_t i) {
  return static_cast<std::byte>(seed * 37 + i * 7 + (i >> 8) * 3 + 1);
}
inline void fill(std::span<std::byte> bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(seed, i);
}
inline std::vector<std::byte> pattern_bytes(std::uint32_t seed, std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill(bytes, seed);
  return bytes;
}
inline bool matches(std::span<const std::byte> bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(seed, i)) return false;
  return true;
}

}  // namespace test
