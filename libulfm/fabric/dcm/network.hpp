// The production model of a network of Direct-Connect routers: exact to the nibble and the cycle, paid for by
// events.
//
// An arena of indices without pointers, as that of the X-Switches. What happens in a cycle, and in which
// order, is written in reference.hpp; this model does the same without going through the cycles. A message
// costs some events for each channel on its way and some for each time it is throttled, whatever its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "fabric/dcm/counters.hpp"
#include "fabric/dcm/parameters.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::dcm {

/// A cycle that never comes.
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 58;

/// Most data bytes of one message.
inline constexpr std::uint32_t kMostBytes = 1u << 30;

class CircuitEngine;

/// One thread at a time, of any process that maps the arena. No call allocates except create() and attach().
/// Ends of messages are named as in words.hpp: nodes 0 to 2^d - 1, then the gateways of their routers.
class Network {
 public:
  /// Bytes of the arena for that many messages at a time.
  static std::size_t bytes(std::uint32_t dimension, std::uint32_t frames);
  /// Makes a network of idle routers in zeroed memory of bytes(), 64-byte aligned. Errc::invalid when the
  /// parameters cannot work (see check()) or there is no such cube.
  static Result<Network> create(void* memory, std::uint32_t dimension, const Parameters& parameters,
                                std::uint32_t frames);
  /// The network that is there already, made by any process. Errc::protocol when `bytes` of memory do not
  /// hold one.
  static Result<Network> attach(void* memory, std::size_t bytes);

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  /// Puts a message behind those that wait to leave `from`. `begins`: the software prepares it (send_cycles)
  /// and takes it (receive_cycles); a frame that goes on with a message is spared that. False, with nothing
  /// taken, when its name is unknown or in use, an end is unknown, both are the same, the source is down, or
  /// there are too many bytes.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins = true);

  /// Goes on, whole cycle by whole cycle, until `budget` events have been handled, `endings` is full, nothing
  /// moves, or cycle `until` comes. Returns how many ended.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);

  /// Goes on to cycle `until`, whatever that takes; endings are kept for run().
  void catch_up(std::uint64_t until);

  /// The node (or the device at the gateway) takes nothing for so many cycles from now(); kNever: until told
  /// otherwise, 0: takes on.
  void stall(std::uint32_t end, std::uint64_t cycles);

  /// The channels between a router and its neighbour in dimension `way`, both directions, or what hangs on
  /// its gateway (7) or is its node (8), goes down or comes back before cycle now().
  void set_channel(std::uint32_t router, std::uint32_t way, bool up);
  /// A router dies with all that is in it, or comes back; its channels go and come with it.
  void set_router(std::uint32_t router, bool alive);
  /// No channel on the way between two ends is down, nor are they.
  bool reaches(std::uint32_t from, std::uint32_t to) const noexcept;

  /// Somebody wrote into the arena: the network stands still for good. Not every write is noticed; none makes
  /// it leave the arena, and frames and nodes in endings are always those of the network.
  bool damaged() const noexcept;
  /// Nothing moves, and nothing will without inject() or stall().
  bool idle() const noexcept;
  /// The cycle of the next event; kNever when there is none. An ending that was not handed out counts as one.
  std::uint64_t next_event() const noexcept;
  /// Endings that were not handed out.
  std::uint32_t ended() const noexcept;
  std::uint32_t frames_inside() const noexcept;
  /// The cycle everything before which has happened. The first is 1.
  std::uint64_t now() const noexcept;
  std::uint64_t events() const noexcept;

  /// Of a way out: 0 to 6 a channel, 7 the gateway, 8 the node's sink.
  ChannelCounters counters(std::uint32_t router, std::uint32_t way);
  /// Counted anew over the whole network; Balance::holds() is false only after damage to the arena.
  Balance balance();

 private:
  explicit Network(std::unique_ptr<CircuitEngine> engine) noexcept;
  std::unique_ptr<CircuitEngine> engine_;
};

}  // namespace ulfm::fabric::dcm
