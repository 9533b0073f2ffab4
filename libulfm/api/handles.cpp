#include "api/handles.hpp"

#include <array>
#include <atomic>
#include <mutex>

namespace ulfm {
namespace {

constexpr std::size_t kJobs = 64;

struct JobSlot {
  std::unique_ptr<Node> node;
  std::atomic<std::uint32_t> generation{1};
  // Odd while the port is open under a handle; part of the handle.
  std::array<std::atomic<std::uint32_t>, kPortsPerProcess> ports{};
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

struct PortBits {
  std::uint32_t number, slot, generation;
};
PortBits bits_of(ulfm_port port) {
  return {static_cast<std::uint32_t>(port & 0xffff) - 1, static_cast<std::uint32_t>(port >> 16 & 0xffff),
          static_cast<std::uint32_t>(port >> 32)};
}

auto stale(const char* what) {
  return fail(Errc::stale, std::string("this ") + what + " handle is not valid: it was closed, or never opened");
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
  JobSlot& slot = table().jobs[static_cast<std::size_t>(job & 0xffffffff) - 1];
  slot.generation.fetch_add(1, std::memory_order_release);
  for (auto& generation : slot.ports)
    if (generation.load() % 2 == 1) generation.fetch_add(1, std::memory_order_release);
  return std::move(slot.node);
}

Result<ulfm_port> open_port(ulfm_job job, std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth) {
  auto node = node_of(job);
  if (!node) return fail(node.error());
  auto core = (*node)->open(number, slot_bytes, depth);
  if (!core) return fail(core.error());
  const std::uint64_t slot = (job & 0xffffffff) - 1;
  const std::uint16_t n = (*core)->number();
  const std::uint32_t generation = table().jobs[slot].ports[n].fetch_add(1, std::memory_order_acq_rel) + 1;
  return ulfm_port{std::uint64_t{n} + 1} | slot << 16 | std::uint64_t{generation} << 32;
}

OpenPort port_of(ulfm_port port) noexcept {
  const PortBits bits = bits_of(port);
  if (bits.number >= kPortsPerProcess || bits.slot >= kJobs) return {};
  JobSlot& slot = table().jobs[bits.slot];
  if (slot.ports[bits.number].load(std::memory_order_acquire) != bits.generation || bits.generation % 2 == 0) return {};
  return {slot.node.get(), slot.node->port(static_cast<std::uint16_t>(bits.number))};
}

Result<void> close_port(ulfm_port port) {
  const OpenPort open = port_of(port);
  if (open.core == nullptr) return stale("port");
  const PortBits bits = bits_of(port);
  table().jobs[bits.slot].ports[bits.number].fetch_add(1, std::memory_order_acq_rel);
  return open.node->close(static_cast<std::uint16_t>(bits.number));
}

}  // namespace ulfm
