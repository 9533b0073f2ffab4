// Counters: what was sent, received, cached and waited for. Plain 64-bit words with one writer each.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ulfm {

/// A word one thread writes and any thread or process may read. Not atomic increments: a load and a store.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Traffic and events of one port.
struct PortCounters {
  Counter sent_messages, sent_bytes;          ///< messages posted, payload bytes
  Counter received_messages, received_bytes;  ///< messages handed to the application
  Counter open_frames, lane_frames;           ///< frames sent by way of open rings and of lanes
  Counter exchanged_frames;                   ///< of those: written where this process had read
  Counter common_frames;                      ///< frames of both directions in cells that they have in common
  Counter lanes_opened;                       ///< lanes claimed at destinations
  Counter lanes_granted;                      ///< lanes that senders have claimed here
  Counter full;                               ///< times a destination had no room
  Counter cache_in;                           ///< messages moved to the message cache
  Counter cache_hits;                         ///< messages handed out from the message cache
  Counter cache_bytes_peak;                   ///< most bytes the message cache has held
  Counter once_messages, once_bytes;          ///< MPI's long messages that were copied once, and their bytes
  Counter group_messages;                     ///< messages posted to groups, each counted once
  Counter group_frames, group_copies;         ///< frames sent to several at once, and their receivers
  Counter group_singles;                      ///< frames to one member of a group by its own connection
};

}  // namespace ulfm
