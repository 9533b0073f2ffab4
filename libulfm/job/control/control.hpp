// The control channel: one of the two channels between processes. Set-up, descriptors, aborts and the end of
// a process go over connections of their own, while the transport carries data (Fang and Lei 2017, section 3:
// control information by TCP, data by the bus).
//
// One Control to a process. It listens where its endpoint key says; a process that connects must show that it
// knows the secret in that key. A thread serves connections, whatever the program does meanwhile, and
// sleeps when there are none. Unauthenticated peers get a bounded number of places, each for a bounded time, and are
// counted.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "job/control/key.hpp"
#include "job/control/socket.hpp"

namespace ulfm::control {

struct ControlSettings {
  SocketKind kind = SocketKind::tcp;
  int rank = 0;                                    ///< for messages, and sent to peers
  std::chrono::milliseconds patience{30000};       ///< for a connection, all tries together, and for fetch()
  std::chrono::milliseconds handshake_time{5000};  ///< from a connection's first byte or none to its proof and identity
  std::size_t unauthenticated_limit = 256;         ///< unauthenticated connections at a time; the oldest makes room
};

struct Server;

/// Unauthenticated peers so far, by what became of them.
struct UnauthenticatedCounts {
  std::uint64_t refused = 0;      ///< sent something else than a peer would
  std::uint64_t timed_out = 0;    ///< said nothing, or too slowly
  std::uint64_t crowded_out = 0;  ///< made room for a later one
  std::uint64_t left = 0;         ///< closed the connection before they had shown anything
  std::uint64_t all() const noexcept { return refused + timed_out + crowded_out + left; }
};

/// A duplicate of the descriptor that a peer asks for; empty when there is no such thing. Called by the
/// serving thread.
using Source = std::function<Fd(std::uint32_t what)>;

class Control {
 public:
  /// Begins to listen. `identity` is the transport's card. Errors: Errc::system.
  static Result<std::unique_ptr<Control>> start(const ControlSettings& settings, std::string identity,
                                                Source source = {});
  /// Says goodbye to everybody.
  ~Control();
  Control(const Control&) = delete;

  /// The transport's card with the endpoint key.
  const std::string& card() const noexcept { return card_; }

  /// Before data go from port `from` to port `to` of the process with that card: says so over the control
  /// connection that there is, made by either side, or has one made. Does not wait for it, and neither need
  /// the data. A card without a key is fine when that process has connected to us, or when it has no control
  /// channel at all. Any thread. Errors: Errc::protocol for a key that is none, Errc::closed.
  Result<void> set_up(std::string_view card, std::uint16_t to, std::uint16_t from);

  /// Waits until there is a control connection to the process with that identity, after set_up(). Errors:
  /// Errc::peer_failed, Errc::timed_out; Errc::unavailable when none is being made. Any thread.
  Result<void> await(std::string_view identity);

  /// Asks the process with that identity for a descriptor; waits for the connection, too. Errc::unavailable
  /// when it is not connected by a Unix-domain socket, Errc::not_found when it has no such descriptor,
  /// Errc::timed_out, Errc::peer_failed. Any thread.
  Result<Fd> fetch(std::string_view identity, std::uint32_t what);

  /// Tells everybody connected that this process ends before its time. `code` is its exit code. Does not
  /// wait.
  void abort(std::int32_t code, std::string_view sentence);

  /// Ends the serving thread and all connections, with goodbyes; waits up to 2 s for those that are being
  /// made. Nothing else may be called afterwards but this and statistics().
  void close();

  /// Lines for ULFM_STATS=1, each beginning with "ulfm: stats".
  std::string statistics(const std::string& who) const;
  UnauthenticatedCounts unauthenticated() const;
  /// Control connections that are open now.
  std::size_t connections() const;

 private:
  explicit Control(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
  std::string card_;
};

}  // namespace ulfm::control
