// Connecting to another process's control channel, up to the point where both know who the other is.
#pragma once

#include "job/control/handshake.hpp"
#include "job/control/socket.hpp"

namespace ulfm::control {

using Clock = std::chrono::steady_clock;

/// A connection that has been set up, and what that took.
struct Dialled {
  Fd socket;
  Identity peer;
  std::uint64_t messages_out = 0, messages_in = 0, bytes_out = 0, bytes_in = 0;
};

/// Connects and goes through the handshake; blocks until `until` at most. A listener that is flooded may drop a true
/// peer too, so a connection that ends early is tried again. Errors: Errc::peer_failed when nobody listens there or who
/// listens does not know the secret, Errc::timed_out.
Result<Dialled> dial(const EndpointKey& key, const Identity& self, Clock::time_point until);

}  // namespace ulfm::control
