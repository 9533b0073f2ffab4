#include "fabric/xswitch/arena.hpp"

#include <algorithm>
#include <bit>

#include "fabric/kit/shelf.hpp"

namespace ulfm::fabric::xswitch {

Geometry Geometry::of(std::uint32_t ports, std::uint32_t switches, std::uint32_t nodes, std::uint32_t frames,
                      const Parameters& parameters) {
  Geometry g;
  g.ports = ports;
  g.switch_ports = switches * ports;
  g.nodes = nodes;
  g.frames = frames;
  g.parameters = parameters;
  g.ends = g.switch_ports + nodes;
  g.feeders = g.ends + nodes;
  g.events = g.feeders * kEventKinds;
  g.slot_words = (g.feeders + 63) / 64;
  g.summary_words = (g.slot_words + 63) / 64;
  // A frame in a FIFO has a unit there, and one more may be on its way out.
  g.queue_capacity = std::bit_ceil(parameters.fifo_units + 2);
  // In a cycle a channel gets one change of its run and one command; the last to be known are those of two
  // cycles on.
  g.flight_capacity = std::bit_ceil(2 * (parameters.link_cycles + 3));
  g.route_capacity = std::clamp(switches, 1u, 255u);
  g.frame_bytes = static_cast<std::uint32_t>(up_to_line(offsetof(FrameSlot, route) + g.route_capacity));
  for (std::size_t i = 0; i < kBuckets; ++i) g.bounds[i] = bucket_end(i, parameters.fifo_units);
  Shelf shelf;
  shelf.put<Header>(1);
  g.ports_at = shelf.put<Port>(g.feeders);
  g.fifo_tallies_at = shelf.put<FifoTally>(g.feeders);
  g.channel_tallies_at = shelf.put<ChannelTally>(g.feeders);
  g.queues_at = shelf.put<Entry>(std::size_t{g.feeders} * g.queue_capacity);
  g.flights_at = shelf.put<StateChange>(std::size_t{g.ends} * g.flight_capacity);
  g.wheel_at = shelf.put<std::uint64_t>(std::size_t{kWheelSlots} * g.slot_words);
  g.summaries_at = shelf.put<std::uint64_t>(std::size_t{kWheelSlots} * g.summary_words);
  g.heap_at = shelf.put<HeapItem>(g.events);
  g.links_at = shelf.put<std::uint8_t>(g.ends);
  g.rates_at = shelf.put<std::uint8_t>(g.ends);
  g.frames_at = shelf.put_bytes(std::size_t{frames} * g.frame_bytes);
  g.bytes = shelf.end();
  return g;
}

SwitchArena::SwitchArena(void* memory, const Geometry& geometry) : geometry_(geometry) {
  auto* base = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<Header*>(base);
  ports_ = reinterpret_cast<Port*>(base + geometry.ports_at);
  fifo_tallies_ = reinterpret_cast<FifoTally*>(base + geometry.fifo_tallies_at);
  channel_tallies_ = reinterpret_cast<ChannelTally*>(base + geometry.channel_tallies_at);
  queues_ = reinterpret_cast<Entry*>(base + geometry.queues_at);
  flights_ = reinterpret_cast<StateChange*>(base + geometry.flights_at);
  wheel_ = reinterpret_cast<std::uint64_t*>(base + geometry.wheel_at);
  summaries_ = reinterpret_cast<std::uint64_t*>(base + geometry.summaries_at);
  heap_ = reinterpret_cast<HeapItem*>(base + geometry.heap_at);
  links_ = reinterpret_cast<std::uint8_t*>(base + geometry.links_at);
  rates_ = reinterpret_cast<std::uint8_t*>(base + geometry.rates_at);
  frames_ = base + geometry.frames_at;
}

}  // namespace ulfm::fabric::xswitch
