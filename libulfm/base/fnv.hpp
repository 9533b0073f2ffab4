// A number for a text, for names of things: FNV-1a (Fowler, Noll and Vo), 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace ulfm {

constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace ulfm
