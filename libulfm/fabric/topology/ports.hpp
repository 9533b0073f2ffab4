// What the ports of a switch are called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ulfm::fabric {

/// "A" to "Z", then "AA" to "ZZ".
inline std::string port_label(std::uint32_t port) {
  constexpr std::uint32_t kLetters = 26;
  std::string label(1, static_cast<char>('A' + port % kLetters));
  if (port >= kLetters) label.insert(label.begin(), static_cast<char>('A' + (port / kLetters - 1) % kLetters));
  return label;
}

/// The port that is called so; nothing: none is.
inline std::optional<std::uint32_t> port_of_label(std::string_view label) {
  std::uint32_t port = 0;
  for (const char c : label) {
    if (c < 'A' || c > 'Z') return std::nullopt;
    port = port * 26 + static_cast<std::uint32_t>(c - 'A' + 1);
  }
  if (label.empty() || label.size() > 2) return std::nullopt;
  return port - 1;
}

}  // namespace ulfm::fabric
