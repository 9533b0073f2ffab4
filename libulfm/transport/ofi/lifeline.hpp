// libfabric keeps its sockets to itself. We find them among the descriptors of this process, by their addresses, to ask
// the other host for a sign of life, to end connections that say nothing, and to count those that were accepted.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "transport/hosts/socket_address.hpp"

namespace ulfm::ofi {

using hosts::SocketAddress;

/// The socket of a connection; none where there is none, as with hardware that is no TCP.
class Lifeline {
 public:
  /// Finds the socket with these two ends, and has its kernel ask the other host for a sign of life.
  void find(const SocketAddress& own, const SocketAddress& peer, std::chrono::milliseconds give_up) noexcept;
  /// Nothing has come from the other host for `give_up`, although it was asked.
  bool is_silent(std::chrono::milliseconds give_up) const noexcept;
  /// Ends the connection: libfabric takes it for a peer that has gone.
  void cut() const noexcept;
  /// Closes the socket in a forked child.
  void leave() const noexcept;

 private:
  bool is_there() const noexcept;
  int socket_ = -1;
  SocketAddress own_, peer_;
};

/// In a forked child: closes the listeners at that port of this process, and the connections that came to it.
void leave_sockets_at(std::uint16_t port) noexcept;

/// Programs that this process starts do not inherit the listeners at that port of it.
void close_on_exec_at(std::uint16_t port) noexcept;

/// The kernel of the other host has accepted a connection to `peer`: it is the process there that has not answered yet.
bool is_host_answering(const SocketAddress& peer) noexcept;

/// Connections that came to a port of this process and have not become one of ours: whoever connects and says nothing,
/// or half a word, would keep a descriptor for ever.
class UnauthenticatedPeers {
 public:
  using Clock = std::chrono::steady_clock;
  /// Ends those that are not among `known` and have been there for a while, a shorter one when there are many. Returns
  /// how many. Not while another thread may close sockets of libfabric.
  std::size_t end_some(std::uint16_t port, const std::set<std::string>& known, Clock::time_point now) noexcept;
  /// How many there are now.
  static std::size_t count(std::uint16_t port, const std::set<std::string>& known);
  /// When to look again.
  Clock::time_point next_look() const noexcept { return next_look_; }

 private:
  std::map<std::string, Clock::time_point> first_seen_;  // by the other end
  Clock::time_point next_look_{};
};

/// Counts the connections that a call of libfabric accepts. It does not tell of those that it ends itself, because they
/// send nonsense. An accepted connection gets the lowest free descriptor.
class Accepting {
 public:
  /// `listeners`: each accepts one connection in a call.
  explicit Accepting(std::size_t listeners) noexcept;
  /// Those at this port that were accepted since.
  std::size_t count(std::uint16_t port) const noexcept;

 private:
  std::array<int, 2> next_{-1, -1};
};

}  // namespace ulfm::ofi
