// Connecting to another process's control channel, up to the point where both know who the other is.
#pragma once

#include "job/control/handshake.hpp"
#include "job/control/socket.hpp"

namespace ulfm::control {

using Clock = std::chrono::steady_clock;

/// What went over the connections of one kind.
struct Traffic {
  std::uint64_t made = 0, accepted = 0;
  std::uint64_t messages_out = 0, messages_in = 0, bytes_out = 0, bytes_in = 0;
};

/// One such attempt. The server's thread moves it on; nothing here blocks. A listener that is flooded may drop a
/// true peer too, so a connection that ends early is tried again.
class Call {
 public:
  enum class State {
    pausing,        ///< before the first try, or the next one
    connecting,     ///< until the socket is writable
    shaking_hands,  ///< until the handshake is through
    through,
    failed
  };

  /// Tries from `begin` until `until`. `self` outlives the call.
  Call(EndpointKey key, const Identity& self, Clock::time_point begin, Clock::time_point until)
      : key_(std::move(key)), self_(self), until_(until), deadline_(begin) {}

  /// Somebody waits: the first try is due now. Pauses between tries stay as they are: they spare a crowded listener.
  void hurry() noexcept {
    if (!begun_) deadline_ = std::min(deadline_, Clock::now());
  }

  /// Its socket is ready, or (not `ready`) its deadline has come.
  State move_on(bool ready);

  State state() const noexcept { return state_; }
  SocketKind kind() const noexcept { return key_.kind; }
  /// When to move it on whatever happens.
  Clock::time_point deadline() const noexcept { return deadline_; }
  int fd() const noexcept { return socket_.get(); }
  /// EPOLLIN or EPOLLOUT.
  std::uint32_t awaits() const noexcept;

  /// When it is through.
  Fd take_socket() noexcept { return std::move(socket_); }
  const Identity& peer() const noexcept { return connector_->peer(); }
  const Traffic& traffic() const noexcept { return traffic_; }

  /// When it has failed. Errc::peer_failed when nobody listens there or who listens does not know the secret,
  /// Errc::timed_out.
  const Error& error() const noexcept { return error_; }
  /// Nobody listens there: that process has left.
  bool nobody_there() const noexcept { return nobody_there_; }

 private:
  void begin_try();
  void begin_handshake();
  void shake_hands();
  void send(const Bytes& bytes, std::uint64_t messages);
  void try_again(const char* how);
  void give_up(Error error);

  EndpointKey key_;
  const Identity& self_;
  Clock::time_point until_, deadline_;
  std::chrono::milliseconds pause_{1};
  State state_ = State::pausing;
  bool begun_ = false;
  Fd socket_;
  PacketReader reader_;
  std::optional<Connector> connector_;
  Traffic traffic_;
  Error error_{};
  bool nobody_there_ = false;
};

}  // namespace ulfm::control
