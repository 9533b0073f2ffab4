#include "fabric/engine/host.hpp"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>

namespace ulfm::fabric {
namespace {

constexpr std::uint32_t kSlotsPerProcess = 64;
constexpr std::uint32_t kSlotBytes = 8192;  // and 4 frames of the network at least
constexpr std::uint32_t kLeastSlotBytes = 1024;
constexpr std::uint32_t kSpareProcesses = 64;  // for MPI_Comm_spawn

ArenaSizes sizes_for(const ModelKind& kind, const Topology& topology, std::uint32_t processes, bool host,
                     std::uint32_t frame_bytes) {
  ArenaSizes sizes;
  sizes.processes = processes;
  sizes.hosts = host ? 1 : 0;
  sizes.gateways = host && kind.gateways ? 1 : 0;
  sizes.nodes = topology.nodes() + sizes.gateways;
  sizes.endpoints = std::min(processes + kSpareProcesses, kMaxEndpoints);
  sizes.slots = kSlotsPerProcess;
  sizes.slot_bytes =
      kind.divides ? frame_bytes : std::max(frame_bytes, std::clamp(4 * frame_bytes, kLeastSlotBytes, kSlotBytes));
  sizes.frame_bytes = frame_bytes;
  // Each process may be connected with each, and with some of them twice for a moment.
  sizes.records = std::min<std::uint32_t>(sizes.endpoints * sizes.endpoints + 1024, 1u << 20);
  sizes.box_entries = std::bit_ceil(sizes.all_slots());
  return sizes;
}

Result<void> check_nodes(const Topology& topology, const std::vector<std::uint32_t>& nodes) {
  for (const std::uint32_t node : nodes)
    if (node >= topology.nodes())
      return fail(Errc::invalid,
                  fmt::format("there is no node {}; this topology has nodes 0 to {}", node, topology.nodes() - 1));
  return {};
}

// Nodes that a host program may load: all that there are, or as many as it was told if that is more.
std::uint32_t places_of_nodes(const FabricPlan& plan, const Topology& topology) {
  const auto nodes = static_cast<std::uint32_t>(topology.placement.empty() ? topology.nodes() : plan.processes);
  return std::min(std::max(plan.processes, nodes), kMaxEndpoints - 1);
}

// The node of each process, from process 0 on.
std::vector<std::uint32_t> places_of(const FabricPlan& plan, const ModelKind& kind, const Topology& topology,
                                     std::uint32_t processes) {
  const std::uint32_t nodes = processes - (plan.host ? 1 : 0);
  std::vector<std::uint32_t> places(processes);
  for (std::uint32_t p = 0; p < nodes; ++p)
    places[p] = p < plan.nodes.size() ? plan.nodes[p] : node_of_process(topology, p, nodes);
  if (plan.host) places.back() = kind.gateways ? topology.nodes() : places.front();
  return places;
}

// All processes run from the first moment, also those that the launcher has not started yet; a host's begin when it
// loads them.
void begin_time(FabricArena& arena, const TimeSettings& settings, const Durations& costs) {
  TimeHeader& time = arena.header().time;
  time.settings = settings;
  time.costs = costs;
  time.cores = std::max(1u, std::thread::hardware_concurrency());  // those that this process may use
  const ArenaSizes& sizes = arena.sizes();
  for (std::uint32_t p = sizes.hosts != 0 ? sizes.processes - 1 : 0; p < sizes.processes; ++p) {
    arena.clock(p).state.store(ClockState::runs, std::memory_order_relaxed);
    arena.header().bounding[p / 64] |= std::uint64_t{1} << p % 64;
  }
  arena.header().endpoints_used.store(sizes.processes, std::memory_order_relaxed);
}

}  // namespace

Result<FabricHost> FabricHost::create(const FabricPlan& plan) {
  auto found = find_model(name_of_transport(plan.transport));
  if (!found) return fail(std::move(found.error()));
  const ModelKind* const kind = *found;
  if (plan.processes == 0 || plan.processes > kMaxEndpoints)
    return fail(Errc::too_large, fmt::format("{}: {} processes; an emulated interconnect carries 1 to {}", kind->name,
                                             plan.processes, kMaxEndpoints));
  const std::string shape = plan.topology.empty() ? kind->default_topology : plan.topology;
  const std::string_view options = options_of_transport(plan.transport);
  auto topology = read_topology(shape);
  if (!topology) return fail(topology.error());
  if (auto ok = check_processes(*topology, plan.processes); !ok) return fail(ok.error());
  if (auto ok = check_links(*kind, *topology); !ok) return fail(ok.error());
  const std::uint32_t processes = plan.host ? places_of_nodes(plan, *topology) + 1 : plan.processes;
  auto given = read_options(*kind, options);
  if (!given) return fail(std::move(given.error()));
  const auto frame_bytes = static_cast<std::uint32_t>(given->number("frame", kind->frame));
  const auto unread = static_cast<std::uint32_t>(given->number("unread", kind->unread));
  auto faults = parse_fault_plan(plan.faults);
  if (!faults) return fail(faults.error());
  const bool timed = !plan.time.empty();
  TimeSettings time;
  Durations costs;
  if (timed) {
    if (options.find("pace=") != std::string_view::npos)
      return fail(Errc::invalid,
                  fmt::format("{}: pace keeps to the host's time; leave it out with --time", kind->name));
    auto settings = parse_time(plan.time);
    if (!settings) return fail(std::move(settings.error()).within("--time"));
    auto durations = durations_of(*kind, options);
    if (!durations) return fail(durations.error());
    time = *settings;
    costs = *durations;
  }
  ArenaSizes sizes = sizes_for(*kind, *topology, processes, plan.host, frame_bytes);
  if (auto ok = check_nodes(*topology, plan.nodes); !ok) return fail(ok.error());
  const std::vector<std::uint32_t> node_of = places_of(plan, *kind, *topology, processes);
  std::vector<std::uint32_t> ends = node_of;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const ModelPlan asked{
      *topology, options, sizes.all_slots() * sizes.pieces(), faults->events, sizes.endpoints, timed ? costs.cycle : 0,
      ends};
  sizes.timed = timed ? 1 : 0;
  sizes.unread = unread;
  auto model = kind->plan(asked);
  if (!model) return fail(std::move(model.error()));
  sizes.model_bytes = model->bytes;
  auto arena = FabricArena::create(*kind, sizes, fmt::format("{} {}", kind->name, shape));
  if (!arena) return fail(arena.error());
  std::copy(node_of.begin(), node_of.end(), arena->header().node_of);
  if (auto ok = model->create(arena->model()); !ok) return fail(ok.error());
  if (timed) begin_time(*arena, time, costs);
  return FabricHost(std::move(*arena), kind);
}

Result<void> FabricHost::publish() {
  const ArenaAddress address = arena_.address();
  if (fcntl(address.fd, F_SETFD, 0) != 0) return fail_errno("keeping the emulated interconnect open");
  setenv("ULFM_FABRIC", encode(address).c_str(), 1);
  return {};
}

}  // namespace ulfm::fabric
