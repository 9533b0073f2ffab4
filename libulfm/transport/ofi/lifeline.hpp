// A connection whose other host has gone has to end. TCP tells that by itself when it is asked to: it probes an idle
// connection, and gives one up that acknowledges nothing. A process that is stopped, by a debugger perhaps, still has a
// kernel that answers, so it is not given up.
//
// libfabric keeps its sockets to itself: they are looked for among the descriptors of this process, by their addresses.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "transport/hosts/socket_address.hpp"

namespace ulfm::ofi {

using hosts::SocketAddress;

/// Has the socket with these two ends given up after `give_up` without an answer. False when there is none, as with
/// hardware that is no TCP.
bool limit_silence(const SocketAddress& own, const SocketAddress& peer, std::chrono::milliseconds give_up) noexcept;

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
  /// When to look again.
  Clock::time_point next_look() const noexcept { return next_look_; }

 private:
  std::map<std::string, Clock::time_point> first_seen_;  // by the other end
  Clock::time_point next_look_{};
};

}  // namespace ulfm::ofi
