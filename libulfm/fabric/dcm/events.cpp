// The heap of events, and going on.
#include "fabric/dcm/network.hpp"

#include <algorithm>

#include "fabric/kit/shelf.hpp"

namespace ulfm::fabric::dcm {

CubeGeometry CubeGeometry::of(std::uint32_t dimension, std::uint32_t frames) {
  CubeGeometry g;
  g.dimension = dimension;
  g.routers = 1u << dimension;
  g.outs = g.routers * kWays;
  g.sources = g.routers * 2;
  g.frames = frames;
  g.items = frames * kTimers + g.outs + g.sources;
  Shelf shelf;
  shelf.put<CubeHeader>(1);
  g.outs_at = shelf.put<Out>(g.outs);
  g.sources_at = shelf.put<Source>(g.sources);
  g.messages_at = shelf.put<CubeMessage>(g.frames);
  g.heap_at = shelf.put<HeapItem>(g.items);
  g.bytes = shelf.end();
  return g;
}

void Network::build() {
  CubeHeader& h = header();
  h.now = 1;
  h.ended.clear();
  for (std::uint32_t i = 0; i < g_.outs; ++i) {
    Out& out = arena_.out(i);
    out.holder = kNone;
    out.last = kNode;
    out.accept = 1;
  }
  for (std::uint32_t i = 0; i < g_.sources; ++i) arena_.source(i) = {kNone, kNone, kNone};
  arena_.heap().clear();
}

// ---- the heap
// -------------------------------------------------------------------------------------------------------

void Network::schedule(std::uint32_t item, std::uint64_t cycle, Phase phase) {
  if (cycle >= kNever) return cancel(item);
  if (!arena_.heap().put(item, cycle * 8 + phase)) damage();
}

void Network::cancel(std::uint32_t item) {
  if (!arena_.heap().remove(item)) damage();
}

// ---- going on
// -------------------------------------------------------------------------------------------------------

std::uint64_t Network::next_event() const noexcept {
  const CubeHeader& h = header();
  if (!h.ended.empty()) return h.now;
  if (h.damaged != 0 || arena_.heap().empty()) return kNever;
  return std::max(arena_.heap().least_key() / 8, h.now);
}

std::size_t Network::hand_out(std::span<Ending> endings) {
  CubeHeader& h = header();
  std::size_t n = 0;
  for (; n < endings.size() && !h.ended.empty(); ++n) {
    const FrameId taken = h.ended.take(next_message()), frame = taken < g_.frames ? taken : 0;
    CubeMessage& m = arena_.message(frame);
    m.used = 0;
    --h.inside;
    const std::uint32_t node = (m.delivered != 0 ? m.to : m.from) & (2 * g_.routers - 1);
    endings[n] = {frame, node, m.ended_at, m.delivered != 0};
  }
  return n;
}

std::size_t Network::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  go_on(budget, endings.size(), until);
  return header().damaged != 0 ? 0 : hand_out(endings);
}

void Network::go_on(std::uint64_t budget, std::size_t endings, std::uint64_t until) {
  CubeHeader& h = header();
  if (h.damaged != 0) return;
  const std::uint64_t stop = h.events + budget;
  const IndexedHeap heap = arena_.heap();
  while (!heap.empty() && h.ended.count < endings && h.events < stop) {
    const std::uint64_t t = heap.least_key() / 8;
    if (t >= until || t >= kNever) break;
    if (t < h.now) return damage();
    // A cycle as a whole. What it causes in itself has later phases, so that it ends.
    const std::uint64_t most = h.events + 16 * std::uint64_t{g_.items} + 64;
    while (!heap.empty() && heap.least_key() / 8 == t) {
      const std::uint32_t item = heap.first_owner();
      if (!heap.has(item) || ++h.events > most || !heap.remove(item)) return damage();
      dispatch(item, t);
      if (h.damaged != 0) return;
    }
    h.now = t + 1;
  }
  const std::uint64_t next = heap.empty() ? kNever : heap.least_key() / 8;
  // Not behind an ending that is about to be reported: what it causes may enter before that cycle.
  if (until < kNever && next >= until && h.now < until && h.ended.count < endings) h.now = until;
}

void Network::dispatch(std::uint32_t item, std::uint64_t t) {
  if (item >= g_.frames * kTimers + g_.outs) return begin(item - g_.frames * kTimers - g_.outs, t);
  if (item >= g_.frames * kTimers) return arbitrate(item - g_.frames * kTimers, t);
  const FrameId frame = item / kTimers;
  switch (static_cast<Timer>(item % kTimers)) {
    case kPath: return path(frame, t);
    case kSerializer: return serialize(frame, t);
    case kSink: return take(frame, t);
    default: return ready_arrives(frame, t);
  }
}

}  // namespace ulfm::fabric::dcm
