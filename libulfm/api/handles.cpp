#include "api/handles.hpp"

#include <mutex>

#include <fmt/core.h>

namespace ulfm {

constinit std::array<std::array<PortSlot, kPortsPerProcess>, kJobs> g_port_slots{};

namespace {

struct JobSlot {
  std::unique_ptr<Node> node;
  // Part of the handle, changed under the lock. Who uses a handle was given it after the node came here, and that
  // publishes the node; here the order publishes nothing.
  std::atomic<std::uint32_t> generation{1};
};

struct Table {
  std::mutex lock;
  std::array<JobSlot, kJobs> jobs;
};

// Never destroyed: a port that outlives main() must find it.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

auto stale(const char* what) {
  return fail(Errc::stale, fmt::format("this {} handle is not valid: it was closed, or never opened", what));
}

}  // namespace

Result<ulfm_job> adopt_node(std::unique_ptr<Node> node) {
  std::lock_guard lock(table().lock);
  for (std::size_t i = 0; i < kJobs; ++i) {
    JobSlot& slot = table().jobs[i];
    if (slot.node) continue;
    slot.node = std::move(node);
    return ulfm_job{i + 1} | ulfm_job{slot.generation.load()} << 32;
  }
  return fail(Errc::full, "64 jobs are joined already; leave one first");
}

Result<Node*> node_of(ulfm_job job) {
  const std::size_t i = static_cast<std::size_t>(job & 0xffffffff) - 1;
  if (i >= kJobs) return stale("job");
  JobSlot& slot = table().jobs[i];
  if (!slot.node || slot.generation.load(std::memory_order_acquire) != job >> 32) return stale("job");
  return slot.node.get();
}

Result<std::unique_ptr<Node>> disown_node(ulfm_job job) {
  std::lock_guard lock(table().lock);
  if (auto node = node_of(job); !node) return fail(node.error());
  const std::size_t index = static_cast<std::size_t>(job & 0xffffffff) - 1;
  JobSlot& slot = table().jobs[index];
  slot.generation.fetch_add(1, std::memory_order_release);
  for (PortSlot& port : g_port_slots[index])
    if (port.generation.load() % 2 == 1) port.generation.fetch_add(1, std::memory_order_release);
  return std::move(slot.node);
}

Result<ulfm_port> open_port(ulfm_job job, std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth) {
  auto node = node_of(job);
  if (!node) return fail(node.error());
  auto core = (*node)->open(number, slot_bytes, depth);
  if (!core) return fail(core.error());
  const std::uint64_t index = (job & 0xffffffff) - 1;
  const std::uint16_t n = (*core)->number();
  PortSlot& slot = g_port_slots[index][n];
  slot.open = {*node, *core};
  const std::uint32_t generation = slot.generation.fetch_add(1, std::memory_order_acq_rel) + 1;
  return ulfm_port{std::uint64_t{n} + 1} | index << 16 | std::uint64_t{generation} << 32;
}

Result<void> close_port(ulfm_port port) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return stale("port");
  const std::uint16_t number = open.core->number();
  auto generation = static_cast<std::uint32_t>(port >> 32);
  // Of two threads that close it one finds it open.
  if (!g_port_slots[port >> 16 & 0xffff][number].generation.compare_exchange_strong(generation, generation + 1,
                                                                                    std::memory_order_acq_rel))
    return stale("port");
  return open.node->close(number);
}

Error stale_port() { return {Errc::stale, "this port handle is not valid: it was closed, or never opened"}; }

}  // namespace ulfm
