// What a connection between hosts is told about how TCP shall send and take.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace ulfm::tcp {

/// Before connect(), or when accepted: sends at once, keeps little in the kernel that has not left yet, asks whether
/// the peer's host is alive. What the kernel refuses is left as it is: the connection works without.
void tune(int socket, std::chrono::milliseconds give_up) noexcept;

/// What the kernel offers to take on a connection that is up (tcp(7), TCP_WINDOW_CLAMP), within a network: elsewhere it
/// does as well as it can by itself.
///
/// A window that is much less than the kernel's room stays as wide while data wait to be read, and the kernel
/// acknowledges a message of several segments when it comes. Where the window shrinks the kernel leaves that to recv(),
/// which does so between the message and the program's answer. That takes up to a third of the time of a ping-pong
/// (decision 0052). Messages that the program does not answer one by one are quicker with all the room for a window.
class ReceiveWindow {
 public:
  static constexpr int kSteady = 1024 * 1024;         ///< bytes
  static constexpr std::uint32_t kReadsPerLook = 32;  ///< the window is looked at so often

  /// So many bytes were read. `took_all`: nothing is left to be read, so the sender has been told of the room.
  void note_read(int socket, std::size_t bytes, bool took_all) noexcept;
  /// The program has sent a message.
  void note_message() noexcept { answers_ += std::exchange(has_heard_, false); }

 private:
  void look(int socket) noexcept;
  bool is_near_ = false, is_steady_ = false;
  bool has_heard_ = false;  ///< since the last message
  // since the last look
  std::uint32_t reads_ = 0;
  std::uint32_t answers_ = 0;  ///< messages behind a read
  std::uint64_t bytes_ = 0;
};

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
