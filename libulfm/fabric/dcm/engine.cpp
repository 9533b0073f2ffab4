// The heap of events, and going on.
#include "fabric/dcm/engine.hpp"

#include <algorithm>

#include "fabric/kit/shelf.hpp"

namespace ulfm::fabric::dcm {

Geometry Geometry::of(std::uint32_t dimension, std::uint32_t frames) {
  Geometry g;
  g.dimension = dimension;
  g.routers = 1u << dimension;
  g.outs = g.routers * kWays;
  g.sources = g.routers * 2;
  g.frames = frames;
  g.items = frames * kTimers + g.outs + g.sources;
  Shelf shelf;
  shelf.put<Header>(1);
  g.outs_at = shelf.put<Out>(g.outs);
  g.sources_at = shelf.put<Source>(g.sources);
  g.messages_at = shelf.put<Message>(g.frames);
  g.heap_at = shelf.put<HeapItem>(g.items);
  g.bytes = shelf.end();
  return g;
}

void CircuitEngine::build() {
  Header& h = header();
  h.now = 1;
  h.ended_first = h.ended_last = kNone;
  for (std::uint32_t i = 0; i < g_.outs; ++i) {
    Out& out = arena_.out(i);
    out.holder = kNone;
    out.last = kNode;
    out.accept = 1;
  }
  for (std::uint32_t i = 0; i < g_.sources; ++i) arena_.source(i) = {kNone, kNone, kNone};
  for (std::uint32_t i = 0; i < g_.items; ++i) arena_.heap(i).place = kNone;
}

// ---- the heap
// -------------------------------------------------------------------------------------------------------

void CircuitEngine::put(std::uint32_t place, std::uint64_t key, std::uint32_t item) {
  arena_.heap(place).key = key;
  arena_.heap(place).owner = item;
  arena_.heap(item).place = place;
}

void CircuitEngine::sift_up(std::uint32_t place, std::uint64_t key, std::uint32_t item) {
  while (place != 0) {
    const std::uint32_t above = (place - 1) / 2;
    const HeapItem& other = arena_.heap(above);
    if (other.key <= key) break;
    put(place, other.key, other.owner);
    place = above;
  }
  put(place, key, item);
}

void CircuitEngine::sift_down(std::uint32_t place, std::uint64_t key, std::uint32_t item) {
  const std::uint32_t size = std::min(header().heap_size, g_.items);
  for (;;) {
    std::uint32_t below = 2 * place + 1;
    if (below >= size) break;
    if (below + 1 < size && arena_.heap(below + 1).key < arena_.heap(below).key) ++below;
    const HeapItem& other = arena_.heap(below);
    if (other.key >= key) break;
    put(place, other.key, other.owner);
    place = below;
  }
  put(place, key, item);
}

void CircuitEngine::schedule(std::uint32_t item, std::uint64_t cycle, Phase phase) {
  if (cycle >= kNever) return cancel(item);
  const std::uint64_t key = cycle * 8 + phase;
  Header& h = header();
  const std::uint32_t place = arena_.heap(item).place;
  if (place != kNone) {
    if (place >= h.heap_size || place >= g_.items) return damage();
    if (key < arena_.heap(place).key) sift_up(place, key, item);
    else sift_down(place, key, item);
    return;
  }
  if (h.heap_size >= g_.items) return damage();
  sift_up(h.heap_size++, key, item);
}

void CircuitEngine::cancel(std::uint32_t item) {
  Header& h = header();
  const std::uint32_t place = arena_.heap(item).place;
  if (place == kNone) return;
  if (place >= h.heap_size || h.heap_size > g_.items) return damage();
  arena_.heap(item).place = kNone;
  const HeapItem last = arena_.heap(--h.heap_size);
  if (place == h.heap_size) return;
  if (last.key < arena_.heap(place).key) sift_up(place, last.key, last.owner);
  else sift_down(place, last.key, last.owner);
}

// ---- going on
// -------------------------------------------------------------------------------------------------------

std::uint64_t CircuitEngine::next_event() const noexcept {
  const Header& h = header();
  if (h.ended != 0) return h.now;
  if (h.damaged != 0 || h.heap_size == 0) return kNever;
  return std::max(arena_.heap(0).key / 8, h.now);
}

std::size_t CircuitEngine::hand_out(std::span<Ending> endings) {
  Header& h = header();
  std::size_t n = 0;
  for (; n < endings.size() && h.ended != 0; ++n, --h.ended) {
    const FrameId frame = h.ended_first < g_.frames ? h.ended_first : 0;
    Message& m = arena_.message(frame);
    h.ended_first = m.next;
    m.used = 0;
    --h.inside;
    const std::uint32_t node = (m.delivered != 0 ? m.to : m.from) & (2 * g_.routers - 1);
    endings[n] = {frame, node, m.ended_at, m.delivered != 0};
  }
  return n;
}

std::size_t CircuitEngine::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  go_on(budget, endings.size(), until);
  return header().damaged != 0 ? 0 : hand_out(endings);
}

void CircuitEngine::go_on(std::uint64_t budget, std::size_t endings, std::uint64_t until) {
  Header& h = header();
  if (h.damaged != 0) return;
  const std::uint64_t stop = h.events + budget;
  while (h.heap_size != 0 && h.ended < endings && h.events < stop) {
    const std::uint64_t t = arena_.heap(0).key / 8;
    if (t >= until || t >= kNever) break;
    if (t < h.now) return damage();
    // A cycle as a whole. What it causes in itself has later phases, so that it ends.
    const std::uint64_t most = h.events + 16 * std::uint64_t{g_.items} + 64;
    while (h.heap_size != 0 && arena_.heap(0).key / 8 == t) {
      const std::uint32_t item = arena_.heap(0).owner;
      if (item >= g_.items || arena_.heap(item).place != 0 || ++h.events > most) return damage();
      cancel(item);
      dispatch(item, t);
      if (h.damaged != 0) return;
    }
    h.now = t + 1;
  }
  const std::uint64_t next = h.heap_size != 0 ? arena_.heap(0).key / 8 : kNever;
  // Not behind an ending that is about to be told: what it causes may enter before that cycle.
  if (until < kNever && next >= until && h.now < until && h.ended < endings) h.now = until;
}

void CircuitEngine::dispatch(std::uint32_t item, std::uint64_t t) {
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
