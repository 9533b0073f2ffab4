// What a connection between hosts is told about how TCP shall send.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace ulfm::tcp {

/// Before connect(), or when accepted: sends at once, keeps little in the kernel that has not left yet, asks whether
/// the peer's host is alive. What the kernel refuses is left as it is: the connection works without.
void tune(int socket, std::chrono::milliseconds give_up) noexcept;

/// Which congestion control connections have (tcp(7), TCP_CONGESTION). Within a network, a round trip of less than a
/// millisecond, it is Reno's, which neither paces nor takes the time that a busy core needs for a sign of congestion
/// (decisions 0050 and 0051). Elsewhere it is the system's.
class CongestionControl {
 public:
  /// `wanted` is ULFM_CONGESTION, for all connections; empty: none is. Errc::invalid, with what there is, when this
  /// process may not use it.
  static Result<CongestionControl> create(const std::string& wanted);

  /// Before connect() or listen(): a connection that began with bbr is paced by timers whatever it has later.
  void begin(int socket) const noexcept;
  /// When the connection is up.
  void settle(int socket) const noexcept;

 private:
  CongestionControl(std::string near, std::string far) : near_(std::move(near)), far_(std::move(far)) {}
  std::string near_, far_;
};

}  // namespace ulfm::tcp
