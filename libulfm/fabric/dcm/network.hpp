// The production model of a network of Direct-Connect routers: exact to the nibble and the cycle, paid for by
// events.
//
// An arena of indices without pointers, as that of the X-Switches. What happens in a cycle, and in which order, is
// written in reference.hpp; this model does the same without going through the cycles. Events are in a heap, in the
// order of cycles and, within a cycle, of those steps. A message costs some events for each channel on its way and some
// for each time it is throttled, whatever its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "fabric/dcm/arena.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::dcm {

/// Most data bytes of one message.
inline constexpr std::uint32_t kMostBytes = 1u << 30;

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

  Network(Network&&) noexcept = default;
  Network& operator=(Network&&) noexcept = default;

  /// Puts a message behind those that wait to leave `from`. `begins`: the software prepares it (send_cycles)
  /// and takes it (receive_cycles); a frame that goes on with a message is spared that. False, with nothing
  /// taken, when its name is unknown or in use, an end is unknown, both are the same, the source is down, or
  /// there are too many bytes.
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins = true);

  /// Goes on, whole cycle by whole cycle, until `budget` events have been handled, `endings` is full, nothing
  /// moves, or cycle `until` comes. Returns how many ended.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);

  /// Goes on to cycle `until`, whatever that takes; endings are kept for run().
  void catch_up(std::uint64_t until) { go_on(kNever, ~std::size_t{0}, until); }

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
  bool damaged() const noexcept { return header().damaged != 0; }
  /// Nothing moves, and nothing will without inject() or stall().
  bool idle() const noexcept { return next_event() == kNever; }
  /// The cycle of the next event; kNever when there is none. An ending that was not handed out counts as one.
  std::uint64_t next_event() const noexcept;
  /// Endings that were not handed out.
  std::uint32_t ended() const noexcept { return header().ended.count; }
  std::uint32_t frames_inside() const noexcept { return header().inside; }
  /// The cycle everything before which has happened. The first is 1.
  std::uint64_t now() const noexcept { return header().now; }
  std::uint64_t events() const noexcept { return header().events; }

  /// Of a way out: 0 to 6 a channel, 7 the gateway, 8 the node's sink.
  CircuitCounters counters(std::uint32_t router, std::uint32_t way);
  /// Counted anew over the whole network; Balance::holds() is false only after damage to the arena.
  WordBalance balance();

 private:
  Network(void* memory, const CubeGeometry& geometry, const Parameters& parameters)
      : g_(geometry), p_(parameters), arena_(memory, geometry) {}
  CubeHeader& header() const noexcept { return arena_.header(); }
  void build();
  /// Goes on until so many messages wait to be handed out, or as run().
  void go_on(std::uint64_t budget, std::size_t endings, std::uint64_t until);

  /// Steps of a cycle in which events happen, in their order.
  enum Phase : std::uint32_t { kRelease, kArrive, kRequest, kBegin, kArbitrate, kSend, kTake };

  // Names of things.
  std::uint32_t out_index(std::uint32_t router, std::uint32_t way) const noexcept { return router * kWays + way; }
  std::uint32_t source_index(std::uint32_t end) const noexcept {
    return end % g_.routers * 2 + (end < g_.routers ? 0 : 1);
  }
  std::uint32_t source_way(std::uint32_t end) const noexcept { return end < g_.routers ? kNode : kGateway; }
  static bool is_sink(std::uint32_t out) noexcept { return out % kWays >= kGateway; }
  std::uint32_t way_of(const CubeMessage& m, std::uint32_t hop) const noexcept {
    return hop < kMaxDimensions && m.way[hop] < g_.outs ? m.way[hop] : 0;
  }
  /// The channel that leads back over a hop, from the router behind it.
  std::uint32_t way_back(const CubeMessage& m, std::uint32_t hop) const noexcept {
    const std::uint32_t out = way_of(m, hop), channel = out % kWays;
    return out_index((out / kWays ^ 1u << channel) & (g_.routers - 1), channel);
  }

  // The heap.
  std::uint32_t timer(FrameId frame, Timer which) const noexcept { return frame * kTimers + which; }
  std::uint32_t arbiter(std::uint32_t out) const noexcept { return g_.frames * kTimers + out; }
  std::uint32_t starter(std::uint32_t source) const noexcept { return g_.frames * kTimers + g_.outs + source; }
  void schedule(std::uint32_t item, std::uint64_t cycle, Phase phase);
  void cancel(std::uint32_t item);
  void dispatch(std::uint32_t item, std::uint64_t t);
  auto next_message() const noexcept {
    return [this](std::uint32_t i) -> std::uint32_t& { return arena_.message(i).next; };
  }
  std::size_t hand_out(std::span<Ending> endings);
  void damage() noexcept { header().damaged = 1; }

  // The path (path.cpp).
  void begin(std::uint32_t source, std::uint64_t t);
  void path(FrameId frame, std::uint64_t t);
  void request(FrameId frame, std::uint64_t t);
  void release(FrameId frame, std::uint64_t t);
  void arbitrate(std::uint32_t out, std::uint64_t t);
  void grant(std::uint32_t out, std::uint32_t in, std::uint64_t t);
  void grant_channel(FrameId frame, std::uint32_t out, std::uint64_t t);
  void grant_sink(FrameId frame, std::uint32_t out, std::uint64_t t);
  void free_out(std::uint32_t out, std::uint64_t t, std::uint64_t again);

  // Data and status (data.cpp).
  void serialize(FrameId frame, std::uint64_t t);
  void set_ready(FrameId frame, bool ready, std::uint64_t t);
  void ready_arrives(FrameId frame, std::uint64_t t);
  void send_ready(FrameId frame, std::uint32_t hop, bool ready, std::uint64_t t);
  void end_run(CubeMessage& m, std::uint64_t t);
  std::uint64_t slot(std::uint32_t out, std::uint64_t t) const;
  /// Words that the serializer has begun by that cycle, and how often it was interrupted. Of cycles to come:
  /// if it goes on as it does now.
  std::uint32_t begun(const CubeMessage& m, std::int64_t cycle) const noexcept;
  std::uint32_t interrupted(const CubeMessage& m, std::int64_t cycle) const noexcept;
  /// When it begins word `n`, from 1; kNever if it does not as it goes on now.
  std::uint64_t begins_word(const CubeMessage& m, std::uint32_t n) const noexcept;
  std::int64_t at_source(std::uint64_t cycle, std::uint32_t hop) const noexcept {
    return static_cast<std::int64_t>(cycle - std::uint64_t{hop} * p_.hop_cycles);
  }

  // Sinks (sink.cpp).
  std::uint32_t arrived(const CubeMessage& m, std::uint64_t cycle) const noexcept;
  void settle(std::uint32_t out, std::uint64_t t);
  std::uint64_t tick_from(std::uint64_t cycle) const noexcept {
    return (cycle + p_.dma_cycles - 1) / p_.dma_cycles * p_.dma_cycles;
  }
  std::uint64_t next_stop(const Out& out, const CubeMessage& m, std::uint64_t t) const;
  std::uint64_t next_go(const Out& out, const CubeMessage& m, std::uint64_t t) const;
  std::uint64_t next_end(const Out& out, const CubeMessage& m, std::uint64_t t) const;
  void plan(FrameId frame, std::uint64_t t);
  void take(FrameId frame, std::uint64_t t);
  void set_accept(FrameId frame, Out& out, bool accept, std::uint64_t t);
  void deliver(FrameId frame, std::uint64_t t);
  void hand_over(FrameId frame, bool delivered, std::uint64_t t);

  // Faults (faults.cpp).
  bool is_down(std::uint32_t out) const noexcept;
  bool uses_what_is_down(const CubeMessage& m, FrameId frame) const;
  void lose_what_is_down();
  void lose(FrameId frame, std::uint64_t t);
  void lose_queue(std::uint32_t source);

  CubeGeometry g_;
  Parameters p_;
  CircuitArena arena_;
};

}  // namespace ulfm::fabric::dcm
