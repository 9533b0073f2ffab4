// Numbers of the protocol that makes a bad network good.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/clock.hpp"

namespace ulfm::reliable {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Most frames a sender may have on the way: the acknowledgement names each of them by one bit.
inline constexpr std::uint32_t kMostWindow = 64;
/// Frames a sender may send before the receiver has said anything.
inline constexpr std::uint32_t kFirstCredit = 8;
/// Least share of a receiver's grant, however many senders it has.
inline constexpr std::uint32_t kLeastShare = 4;
/// A sender that has not looked at its timers for longer was stopped, or without a core, and has not asked: no more of
/// that time counts as the peer's silence. Some does, or a process that is always late would wait for ever.
inline constexpr std::chrono::seconds kLongestAbsence{1};

struct ReliableSettings {
  std::uint32_t window = kMostWindow;  ///< frames on the way at most, 2 to kMostWindow
  std::uint32_t promised = 1024;       ///< frames a port grants to all its senders together, shared out evenly
  std::uint32_t ack_every = 16;        ///< frames taken in before an acknowledgement goes on its own
  nanoseconds ack_delay = 50us;        ///< wait for a frame that can carry it
  nanoseconds first_timeout = 3ms;     ///< to send again, before anything has been measured
  nanoseconds least_timeout = 1ms;     ///< for short ways and waiting processes: below it a retransmission is a guess
  nanoseconds most_timeout = 200ms;    ///< bound of the back-off
  nanoseconds give_up = 10s;           ///< without any acknowledgement, times crowding()
  nanoseconds part_quiet = 10ms;       ///< silence after which a closing port need not answer any more
  nanoseconds keepalive_every = 20ms;  ///< the keepalive thread polls a port that nobody polls so often; 0 never
  std::size_t most_bytes = 1 << 20;    ///< of unacknowledged frames a connection keeps; at least two frames
  std::uint32_t first_stream = 1;      ///< number of the first connection; processes take a random one
  Clock* clock = &Clock::steady();
  /// By how much those that want to run on this host slow everything down, at least 1.
  std::function<double()> crowding = [] { return 1.0; };
};

}  // namespace ulfm::reliable
