// How the production model works, see network.hpp: events in a heap, in the order of cycles and, within a
// cycle, of the steps that reference.hpp describes.
#pragma once

#include "fabric/dcm/arena.hpp"

namespace ulfm::fabric::dcm {

class CircuitEngine {
 public:
  CircuitEngine(void* memory, const Geometry& geometry, const Parameters& parameters)
      : g_(geometry), p_(parameters), arena_(memory, geometry) {}

  const Geometry& geometry() const noexcept { return g_; }
  Header& header() const noexcept { return arena_.header(); }
  void build();

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins);
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until);
  /// Goes on until so many messages wait to be handed out, or as run().
  void go_on(std::uint64_t budget, std::size_t endings, std::uint64_t until);
  void stall(std::uint32_t end, std::uint64_t cycles);
  void set_channel(std::uint32_t router, std::uint32_t way, bool up);
  void set_router(std::uint32_t router, bool alive);
  bool reaches(std::uint32_t from, std::uint32_t to) const noexcept;
  std::uint64_t next_event() const noexcept;
  ChannelCounters counters(std::uint32_t router, std::uint32_t way);
  Balance balance();

 private:
  /// Steps of a cycle in which events happen, in their order.
  enum Phase : std::uint32_t { kRelease, kArrive, kRequest, kBegin, kArbitrate, kSend, kTake };

  // Names of things.
  std::uint32_t out_index(std::uint32_t router, std::uint32_t way) const noexcept { return router * kWays + way; }
  std::uint32_t source_index(std::uint32_t end) const noexcept {
    return end % g_.routers * 2 + (end < g_.routers ? 0 : 1);
  }
  std::uint32_t source_way(std::uint32_t end) const noexcept { return end < g_.routers ? kNode : kGateway; }
  static bool is_sink(std::uint32_t out) noexcept { return out % kWays >= kGateway; }
  std::uint32_t way_of(const Message& m, std::uint32_t hop) const noexcept {
    return hop < kMaxDimensions && m.way[hop] < g_.outs ? m.way[hop] : 0;
  }
  /// The channel that leads back over a hop, from the router behind it.
  std::uint32_t way_back(const Message& m, std::uint32_t hop) const noexcept {
    const std::uint32_t out = way_of(m, hop), channel = out % kWays;
    return out_index((out / kWays ^ 1u << channel) & (g_.routers - 1), channel);
  }

  // The heap.
  std::uint32_t timer(FrameId frame, Timer which) const noexcept { return frame * kTimers + which; }
  std::uint32_t arbiter(std::uint32_t out) const noexcept { return g_.frames * kTimers + out; }
  std::uint32_t starter(std::uint32_t source) const noexcept { return g_.frames * kTimers + g_.outs + source; }
  void schedule(std::uint32_t item, std::uint64_t cycle, Phase phase);
  void cancel(std::uint32_t item);
  void put(std::uint32_t place, std::uint64_t key, std::uint32_t item);
  void sift_up(std::uint32_t place, std::uint64_t key, std::uint32_t item);
  void sift_down(std::uint32_t place, std::uint64_t key, std::uint32_t item);
  void dispatch(std::uint32_t item, std::uint64_t t);
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
  void end_run(Message& m, std::uint64_t t);
  std::uint64_t slot(std::uint32_t out, std::uint64_t t) const;
  /// Words that the serializer has begun by that cycle, and how often it was interrupted. Of cycles to come:
  /// if it goes on as it does now.
  std::uint32_t begun(const Message& m, std::int64_t cycle) const noexcept;
  std::uint32_t interrupted(const Message& m, std::int64_t cycle) const noexcept;
  /// When it begins word `n`, from 1; kNever if it does not as it goes on now.
  std::uint64_t begins_word(const Message& m, std::uint32_t n) const noexcept;
  std::int64_t at_source(std::uint64_t cycle, std::uint32_t hop) const noexcept {
    return static_cast<std::int64_t>(cycle - std::uint64_t{hop} * p_.hop_cycles);
  }

  // Sinks (sink.cpp).
  std::uint32_t arrived(const Message& m, std::uint64_t cycle) const noexcept;
  void settle(std::uint32_t out, std::uint64_t t);
  std::uint64_t tick_from(std::uint64_t cycle) const noexcept {
    return (cycle + p_.dma_cycles - 1) / p_.dma_cycles * p_.dma_cycles;
  }
  std::uint64_t next_stop(const Out& out, const Message& m, std::uint64_t t) const;
  std::uint64_t next_go(const Out& out, const Message& m, std::uint64_t t) const;
  std::uint64_t next_end(const Out& out, const Message& m, std::uint64_t t) const;
  void plan(FrameId frame, std::uint64_t t);
  void take(FrameId frame, std::uint64_t t);
  void set_accept(FrameId frame, Out& out, bool accept, std::uint64_t t);
  void deliver(FrameId frame, std::uint64_t t);
  void hand_over(FrameId frame, bool delivered, std::uint64_t t);

  // Faults (faults.cpp).
  bool is_down(std::uint32_t out) const noexcept;
  bool uses_what_is_down(const Message& m, FrameId frame) const;
  void lose_what_is_down();
  void lose(FrameId frame, std::uint64_t t);
  void lose_queue(std::uint32_t source);

  Geometry g_;
  Parameters p_;
  CircuitArena arena_;
};

}  // namespace ulfm::fabric::dcm
