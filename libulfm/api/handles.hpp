// Handles: numbers that stand for jobs and ports, so that a stale one is an error and not a crash.
//
// job handle   {slot + 1 : 32, generation : 32}
// port handle  {port number + 1 : 16, job slot : 16, port generation : 32}
#pragma once

#include <ulfm/ulfm.h>

#include <array>
#include <atomic>
#include <memory>

#include "port/node.hpp"

namespace ulfm {

/// Gives a node a handle. The table owns it from here on. Errc::full after 64 jobs at a time.
Result<ulfm_job> adopt_node(std::unique_ptr<Node> node);
/// The node of a handle, or Errc::stale.
Result<Node*> node_of(ulfm_job job);
/// Takes it out of the table.
Result<std::unique_ptr<Node>> disown_node(ulfm_job job);

struct OpenPort {
  Node* node = nullptr;
  PortCore* core = nullptr;
};
Result<ulfm_port> open_port(ulfm_job job, std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth);
Result<void> close_port(ulfm_port port);

/// What a handle is looked up in. A constant-initialised table without a destructor: there is nothing to set up on the
/// way of a message, and a port that outlives main() finds it.
struct PortSlot {
  /// Odd while the port is open under a handle; part of the handle. open_port()'s release pairs with port_of(): `open`
  /// is filled in. Closing publishes nothing.
  std::atomic<std::uint32_t> generation{0};
  OpenPort open;
};
inline constexpr std::size_t kJobs = 64;
extern constinit std::array<std::array<PortSlot, kPortsPerProcess>, kJobs> g_port_slots;

/// The port of a handle; core is nullptr when the handle is stale.
inline OpenPort port_of(ulfm_port port) noexcept {
  const std::uint64_t number = (port & 0xffff) - 1, job = port >> 16 & 0xffff;
  const auto generation = static_cast<std::uint32_t>(port >> 32);
  if (number >= kPortsPerProcess || job >= kJobs) return {};
  const PortSlot& slot = g_port_slots[job][number];
  // Acquire pairs with open_port: a thread that has seen the handle sees the port.
  if (slot.generation.load(std::memory_order_acquire) != generation || generation % 2 == 0) return {};
  return slot.open;
}

/// What to say when there is none.
Error stale_port();

/// An arrival as the public interfaces give it out.
inline ulfm_message message_of(const Arrival& arrival) noexcept {
  return {arrival.bytes.data(), arrival.bytes.size(), {arrival.source.process, arrival.source.port, 0}, arrival.handle};
}

}  // namespace ulfm
