// A topology with what the forms of output need besides.
#pragma once

#include <string>
#include <vector>

#include "base/counted.hpp"
#include "fabric/topology/topology.hpp"
#include "options.hpp"

namespace topo {

using ulfm::counted;
using ulfm::fabric::LinkEnd;
using ulfm::fabric::Shape;
using ulfm::fabric::SwitchPort;
using ulfm::fabric::Topology;

struct View {
  Topology topology;
  ulfm::fabric::DeadPorts dead;
  ulfm::fabric::Extent extent;
  std::uint32_t processes = 0;
  std::vector<std::vector<std::uint32_t>> ranks;  ///< by node
  /// How busy each channel is, 0 to 1: by switch * ports + port, then those of the nodes; empty: nobody knows.
  std::vector<double> use;

  bool is_dead(SwitchPort p) const;
  /// "0-3,8"; "" when there are none.
  std::string ranks_on(std::uint32_t node) const;
  /// Every node has the one rank of its own number.
  bool rank_is_node() const;
};

/// Reads the topology the options name; fails when it, a dead port or the number of processes cannot be.
ulfm::Result<View> make_view(const Options& options);

/// "mesh", "torus", "cube", ...
const char* name(Shape shape);
/// What routes follow here: "dimension order", "up*/down*".
const char* routing(const View& view);
/// "s1.B", "n3" or "-": what is at the other end of a port.
std::string end_name(const Topology& topology, SwitchPort port);
/// Links that have cycles of their own, by one of their ends, each once.
std::vector<SwitchPort> own_links(const Topology& topology);
/// What the file gives for the link at that port; 0: nothing.
std::uint32_t own_latency(const Topology& topology, SwitchPort port);
std::uint32_t own_rate(const Topology& topology, SwitchPort port);

}  // namespace topo
