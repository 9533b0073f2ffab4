#include "fabric/xswitch/network.hpp"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

namespace ulfm::fabric::xswitch {

namespace {

constexpr std::uint64_t kMagic = 0x2d58'5377'6974'636b;  // another one for each layout

/// In the arena they have the cycles of the slowest links: what is sized by these is large enough for all.
Parameters with_slowest_link(const Topology& topology, Parameters parameters) {
  parameters.link_cycles = topology.most_link_cycles(parameters.link_cycles);
  parameters.unit_cycles = topology.most_unit_cycles();
  return parameters;
}

Geometry geometry_of(const Topology& topology, const Parameters& parameters, std::uint32_t frames) {
  return Geometry::of(topology.ports, topology.switches, topology.nodes(), frames, parameters);
}

/// Whether the link at a switch's port is told alike at its other end.
bool matches(const Topology& topology, SwitchPort at) {
  const LinkEnd& other = topology.end(at);
  if (other.kind == LinkEnd::Kind::nothing) return true;
  if (other.kind == LinkEnd::Kind::node)
    return other.index < topology.nodes() && topology.attachment[other.index] == at;
  if (other.index >= topology.switches || other.port >= topology.ports) return false;
  const LinkEnd& back = topology.end({other.index, other.port});
  return back.kind == LinkEnd::Kind::switch_port && back.index == at.at && back.port == at.port;
}

Result<void> check(const Topology& topology, std::uint32_t frames) {
  constexpr std::uint32_t kMostEnds = 1u << 24;
  if (topology.ports < 2 || topology.ports > 26 || topology.switches < 1 || topology.nodes() < 1 || frames < 1 ||
      topology.switches > kMostEnds / topology.ports || topology.nodes() > kMostEnds || frames > kMostEnds)
    return fail(Errc::invalid, fmt::format("a network needs switches of 2 to 26 ports, nodes and frames, at most 2^24 "
                                           "each; found {} switches of {} ports, {} nodes, {} frames",
                                           topology.switches, topology.ports, topology.nodes(), frames));
  bool sound = topology.ends.size() == std::size_t{topology.switches} * topology.ports;
  for (std::uint32_t i = 0; sound && i < topology.ends.size(); ++i)
    sound = matches(topology, {i / topology.ports, i % topology.ports});
  for (std::uint32_t node = 0; sound && node < topology.nodes(); ++node) {
    const SwitchPort at = topology.attachment[node];
    sound = at.at < topology.switches && at.port < topology.ports &&
            topology.end(at) == LinkEnd{LinkEnd::Kind::node, node, topology.end(at).port};
  }
  if (!sound)
    return fail(Errc::invalid, fmt::format("topology {}: the ends of a link name different partners", topology.name));
  return {};
}

}  // namespace

void Network::build(const Topology& topology, std::uint32_t link_cycles) {
  header().now = 1;
  header().alone = kNone;
  for (std::uint32_t i = 0; i < geometry().feeders; ++i) {
    Port& port = arena_.port(i);
    port.in.server = is_node(i) ? i : is_source(i) ? i - geometry().nodes : kNone;
    port.in.going = is_node(i);
    port.in.goes_from = 1;
    port.out.polls_from = 1;
    port.in.turn_at = port.in.level_at = kNever;
    port.out.grant_at = port.out.arrival_at = port.out.waits_since = kNever;
    port.out.first_port = i < switch_ports_ ? i - i % ports_ : 0;
    port.out.feeder = is_node(i) ? i + geometry().nodes : kNone;
    port.out.peer = kNone;
  }
  arena_.heap().clear();
  header().ended.clear();
  for (std::uint32_t i = 0; i < switch_ports_; ++i) {
    const LinkEnd& other = topology.ends[i];
    const SwitchPort here{i / ports_, i % ports_};
    const std::uint32_t cycles = topology.link_cycles(here, link_cycles), rate = topology.unit_cycles(here);
    arena_.set_link_cycles(i, cycles);
    arena_.set_unit_cycles(i, rate);
    if (other.kind == LinkEnd::Kind::node) {
      arena_.set_link_cycles(switch_ports_ + other.index, cycles);
      arena_.set_unit_cycles(switch_ports_ + other.index, rate);
    }
    if (other.kind == LinkEnd::Kind::switch_port) arena_.port(i).out.peer = other.index * ports_ + other.port;
    if (other.kind == LinkEnd::Kind::node) {
      arena_.port(i).out.peer = switch_ports_ + other.index;
      arena_.port(switch_ports_ + other.index).out.peer = i;
    }
  }
}

SwitchPortCounters Network::counters_at(std::uint32_t end) {
  if (end >= ends_) return {};
  Port& port = arena_.port(end);
  const std::uint64_t now = header().now;
  settle(end, port.in, now - 1);
  settle_command(end, port.out, now - 1);
  if (port.out.feeder != kNone) settle(port.out.feeder, arena_.port(port.out.feeder).in, now - 1);
  SwitchPortCounters sum;
  sum.out = arena_.channel_tally(end).counters;
  if (port.out.feeder != kNone) {
    const Fifo& feeder = arena_.port(port.out.feeder).in;
    if (feeder.count != 0 && feeder.dropping == 0) count_sent(port.out.feeder, feeder, sum.out);
  }
  if (port.out.waits_since < now) sum.out.wait_cycles += now - port.out.waits_since;
  const FifoTally& tally = arena_.fifo_tally(end);
  sum.in.arbitration_cycles = tally.arbitration_cycles;
  const bool waits = end < switch_ports_ && port.in.count != 0 && port.in.server == kNone && port.in.leaving > 1;
  if (waits && port.in.goes_from < now) sum.in.arbitration_cycles += now - port.in.goes_from;
  sum.in.bad_ends = tally.bad_ends;
  sum.in.lost_units = tally.lost_units;
  std::copy(std::begin(tally.occupancy), std::end(tally.occupancy), sum.in.occupancy.begin() + 1);
  sum.in.occupancy[0] = std::accumulate(sum.in.occupancy.begin() + 1, sum.in.occupancy.end(), now - 1,
                                        [](std::uint64_t rest, std::uint64_t cycles) { return rest - cycles; });
  return sum;
}

LinkEnd Network::peer_at(std::uint32_t end) const {
  if (end >= ends_) return {};
  const std::uint32_t other = arena_.port(end).out.peer;
  if (other >= ends_) return {};
  if (is_node(other)) return {LinkEnd::Kind::node, other - switch_ports_, 0};
  return {LinkEnd::Kind::switch_port, other / ports_, other % ports_};
}

Balance Network::balance() {
  settle();
  Balance sum{header().entered, header().inserted, header().left, header().stripped, header().lost, 0};
  for (std::uint32_t i = 0; i < geometry().ends; ++i)
    sum.present += static_cast<std::uint64_t>(arena_.port(i).in.occupied) + in_flight(i);
  return sum;
}

std::size_t Network::bytes(const Topology& topology, const Parameters& parameters, std::uint32_t frames) {
  return geometry_of(topology, with_slowest_link(topology, parameters), frames).bytes;
}

Result<Network> Network::create(void* memory, const Topology& topology, const Parameters& given, std::uint32_t frames) {
  const Parameters parameters = with_slowest_link(topology, given);
  if (auto fine = xswitch::check(parameters); !fine) return fail(std::move(fine.error()));
  if (auto fine = check(topology, frames); !fine) return fail(std::move(fine.error()));
  auto* header = static_cast<Header*>(memory);
  header->ports = topology.ports;
  header->switches = topology.switches;
  header->nodes = topology.nodes();
  header->frames = frames;
  header->parameters = parameters;
  Network network(memory, geometry_of(topology, parameters, frames));
  network.build(topology, given.link_cycles);
  header->magic = kMagic;
  return network;
}

Result<Network> Network::attach(void* memory, std::size_t bytes) {
  if (bytes < sizeof(Header))
    return fail(Errc::protocol, fmt::format("a network needs more than {} bytes of memory", bytes));
  Header header;
  std::memcpy(&header, memory, sizeof header);
  constexpr std::uint32_t kMost = 1u << 24;
  const bool sound = header.magic == kMagic && header.ports >= 2 && header.ports <= 26 && header.switches >= 1 &&
                     header.switches <= kMost / header.ports && header.nodes >= 1 && header.nodes <= kMost &&
                     header.frames >= 1 && header.frames <= kMost && xswitch::check(header.parameters);
  if (!sound) return fail(Errc::protocol, "the memory does not hold a network of X-Switches");
  const Geometry geometry = Geometry::of(header.ports, header.switches, header.nodes, header.frames, header.parameters);
  if (geometry.bytes > bytes)
    return fail(Errc::protocol,
                fmt::format("the network there needs {} bytes of memory, and {} are mapped", geometry.bytes, bytes));
  return Network(memory, geometry);
}

std::uint32_t Network::end_of(SwitchPort port) const noexcept {
  const std::uint64_t index = std::uint64_t{port.at} * ports_ + port.port;
  return port.port < ports_ && index < switch_ports_ ? static_cast<std::uint32_t>(index) : kNone;
}

std::uint32_t Network::end_of_node(std::uint32_t node) const noexcept {
  return node < ends_ - switch_ports_ ? switch_ports_ + node : kNone;
}

}  // namespace ulfm::fabric::xswitch
