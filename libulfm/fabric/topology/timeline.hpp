// Scheduled faults as a list of changes to a topology, each with the routes that hold from then on.
#pragma once

#include "base/fault_plan.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

/// A moment at which links or a switch go away or come back.
struct TopologyChange {
  std::uint64_t at = 0;           ///< nanoseconds since the job began
  bool up = false;                ///< comes back
  std::int64_t dead_switch = -1;  ///< the switch, or -1
  std::vector<SwitchPort> links;  ///< one end of each link
  DeadPorts dead;                 ///< everything that is down from then on
};

/// In the order of time. Errc::invalid when the topology has no such link, switch or node: the sentence says what it
/// has instead.
Result<std::vector<TopologyChange>> timeline(const Topology& topology, std::span<const FaultEvent> events);

}  // namespace ulfm::fabric
