// The arena of a network of Direct-Connect routers:
//
//   Header | ways out, 9 to a router | sources, 2 to a router | messages | heap of events
//
// Any process that maps it may have written anything into it: every index read from it is checked before it
// is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/dcm/counters.hpp"
#include "fabric/dcm/parameters.hpp"
#include "fabric/dcm/words.hpp"
#include "fabric/kit/chain.hpp"
#include "fabric/kit/heap.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::dcm {

/// A cycle that never comes.
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 58;
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};
inline constexpr std::uint32_t kRuns = 8;      ///< remembered of a message; see CubeMessage::runs
inline constexpr std::uint32_t kChanges = 16;  ///< of RDY, on their way to the source

struct CubeHeader {
  std::uint64_t magic;
  std::uint32_t dimension, frames;
  Parameters parameters;

  alignas(64) std::uint64_t now;
  std::uint64_t events;
  std::uint64_t entered, left, stripped, lost;  ///< words; entered: of messages that have ended
  std::uint32_t heap_size;
  std::uint32_t inside;  ///< messages injected and not handed out
  Chain ended;           ///< messages to hand out
  std::uint32_t down;    ///< channels and routers
  std::uint32_t damaged;
};

/// A way out of a router.
struct alignas(64) Out {
  std::uint32_t holder;  ///< message; kNone
  std::uint8_t hop;      ///< of the holder's way, from 0; sinks: the number of hops
  std::uint8_t last;     ///< way in that was granted last
  std::uint16_t asking;  ///< ways in that request it, a bit each
  std::uint64_t granted;
  std::uint64_t busy_from, busy_until;  ///< no slot for RDY between these two cycles: a probe, or a lost word
  std::uint32_t asking_frame[kWays];
  std::uint32_t down;          ///< 1: the channel, or what hangs on it
  std::uint64_t asked[kWays];  ///< since when
  // Sinks.
  std::uint64_t stalled_until;
  std::uint64_t settled;  ///< the cycle up to which `taken` counts
  std::uint64_t done_at;  ///< the software has the message; 0
  std::uint32_t taken;    ///< words of the holder
  std::uint8_t accept, ended;
  CircuitCounters counters;
};

struct Source {
  std::uint32_t current;  ///< message that the serializer has; kNone
  std::uint32_t first, last;
};

/// Words one after the other, from a cycle on.
struct Run {
  std::uint64_t start;
  std::uint32_t words;
};

/// RDY as it will arrive at the router before hop `hop`.
struct ReadyChange {
  std::uint64_t at;
  std::uint8_t hop, value;
};

/// Heap items of a message.
enum Timer : std::uint32_t { kPath, kSerializer, kSink, kReady, kTimers };

/// A message and its path. What is sent where follows from what the serializer sent: hop h sends the same
/// nibbles h times hop_cycles later. Runs that began longer ago than the longest path takes need not be
/// remembered.
struct alignas(64) CubeMessage {
  std::uint32_t from, to;
  std::uint32_t next;   ///< in the queue of its source, or in the list of those that ended
  std::uint32_t total;  ///< words behind the probe, with the checksum
  std::uint16_t probe;
  std::uint8_t used, begins, entered;
  std::uint8_t hops;      ///< granted
  std::uint8_t released;  ///< hops
  std::uint8_t in;        ///< way in at the router where the probe is
  std::uint8_t requests, at_sink, running, finished, ready, delivered;
  std::uint8_t run_first, run_count;  ///< a piece of the ring of runs
  std::uint8_t change_count;
  std::uint32_t router;                   ///< where the probe is
  std::uint32_t out;                      ///< way out: requested, or the sink
  std::uint32_t way[kMaxDimensions];      ///< ways out: hop by hop
  std::uint32_t older_words, older_runs;  ///< of runs that are not remembered
  std::uint32_t sent;                     ///< words of all finished runs
  std::uint64_t run_start;
  std::uint64_t finished_at;  ///< the cycle behind its last nibble at the source
  std::uint64_t ended_at;
  Run runs[kRuns];
  ReadyChange changes[kChanges];
};

struct CubeGeometry {
  std::uint32_t dimension = 0, routers = 0, outs = 0, sources = 0, frames = 0, items = 0;
  std::size_t outs_at = 0, sources_at = 0, messages_at = 0, heap_at = 0, bytes = 0;
  static CubeGeometry of(std::uint32_t dimension, std::uint32_t frames);
};

/// The arena as one process sees it.
class CircuitArena {
 public:
  CircuitArena(void* memory, const CubeGeometry& geometry) : g_(geometry), base_(static_cast<std::byte*>(memory)) {}
  CubeHeader& header() const noexcept { return *at<CubeHeader>(0); }
  Out& out(std::uint32_t i) const noexcept { return at<Out>(g_.outs_at)[i < g_.outs ? i : 0]; }
  Source& source(std::uint32_t i) const noexcept { return at<Source>(g_.sources_at)[i < g_.sources ? i : 0]; }
  CubeMessage& message(std::uint32_t i) const noexcept {
    return at<CubeMessage>(g_.messages_at)[i < g_.frames ? i : 0];
  }
  /// Of events; keys are cycle * 8 + phase.
  IndexedHeap heap() const noexcept { return {at<HeapItem>(g_.heap_at), g_.items, header().heap_size}; }

 private:
  template <typename T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }
  CubeGeometry g_;
  std::byte* base_;
};

}  // namespace ulfm::fabric::dcm
