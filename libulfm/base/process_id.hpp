// Which process, for people: a number to name it by in messages, not a handle to do something with.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "base/ip.hpp"

namespace ulfm {

struct ProcessId {
  std::int32_t number = 0;  ///< its pid on its own host; 0: no process
  Ip host{};                ///< address by which its host is reached; none: this host

  explicit operator bool() const noexcept { return number != 0; }
  friend bool operator==(const ProcessId&, const ProcessId&) = default;

  /// "process 4711" or "process 4711 on 10.1.0.2".
  std::string text() const {
    const std::string out = fmt::format("process {}", number);
    return host ? fmt::format("{} on {}", out, host.text()) : out;
  }
};

}  // namespace ulfm
