// The production model of a network of X-Switches: exact to the unit and the cycle, paid for by events.
//
// An arena of indices without pointers: the same bytes serve live traffic in a shared segment, mapped anywhere, and
// tests on the heap. It moves counts and states; the bytes of a frame stay where the sender put them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::xswitch {

struct Parameters {
  std::uint32_t fifo_units = 64;   ///< of an input port
  std::uint32_t stop_at = 48;      ///< occupancy that sends ID-STOP
  std::uint32_t go_at = 16;        ///< occupancy that sends ID-GO again
  std::uint32_t link_cycles = 1;   ///< a unit's way over a link
  std::uint32_t check_units = 4;   ///< check bytes behind the data
};

/// The caller's name for a frame: below the number of frames the arena was made for; not in use twice at one time.
using FrameId = std::uint32_t;

/// How a frame ended.
struct Ending {
  FrameId frame = 0;
  std::uint32_t node = 0;      ///< where it arrived
  std::uint64_t cycle = 0;     ///< of its ID-EOF at that node
  bool delivered = false;      ///< false: a dead link or switch took it
};

/// One thread at a time.
class Network {
 public:
  /// Bytes of the arena for that many frames at a time.
  static std::size_t bytes(const Topology& topology, const Parameters& parameters, std::uint32_t frames);
  /// Makes a network of idle switches in zeroed memory, 64-byte aligned.
  static Network create(void* memory, const Topology& topology, const Parameters& parameters, std::uint32_t frames);
  /// The network that is there already, made by any process.
  explicit Network(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

  /// Puts a frame behind those that wait to leave `node`: one routing unit for each switch, data, check, ID-EOF.
  void inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route, std::uint32_t data_units);

  /// Goes on until `budget` events have been handled, `endings` is full, or nothing moves. Returns how many ended.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings);

  /// Nothing moves, and nothing will without inject().
  bool idle() const noexcept;
  /// The cycle everything before which has happened.
  std::uint64_t now() const noexcept;
  /// Events handled so far.
  std::uint64_t events() const noexcept;

 private:
  std::byte* memory_;
};

}  // namespace ulfm::fabric::xswitch
