// Which process, for people: a number to name it by in messages, not a handle to do something with.
#pragma once

#include <cstdint>
#include <string>

namespace ulfm {

struct ProcessId {
  std::int32_t number = 0;  ///< its pid on its own host; 0: no process
  std::uint32_t host = 0;   ///< IPv4 address by which its host is reached, host order; 0: this host

  explicit operator bool() const noexcept { return number != 0; }
  friend bool operator==(const ProcessId&, const ProcessId&) = default;

  /// "process 4711" or "process 4711 on 10.1.0.2".
  std::string text() const {
    std::string out = "process " + std::to_string(number);
    if (host == 0) return out;
    out += " on ";
    for (int shift = 24; shift >= 0; shift -= 8) out += std::to_string(host >> shift & 255) + (shift != 0 ? "." : "");
    return out;
  }
};

}  // namespace ulfm
