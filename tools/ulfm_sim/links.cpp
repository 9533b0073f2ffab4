// How busy links are, in ulfm_topo's picture.
#include <fmt/core.h>

#include "../ulfm_topo/print.hpp"
#include "report.hpp"

namespace sim {

Result<std::string> links_of(const Curve& curve) {
  constexpr std::uint32_t kMostSwitches = 1024;
  if (curve.topology.switches > kMostSwitches)
    return fail(Errc::too_large, fmt::format("topology {} has {} switches; a picture of links has at most {}",
                                             curve.topology.name, curve.topology.switches, kMostSwitches));
  topo::View view;
  view.topology = curve.topology;
  view.topology.name +=
      fmt::format(", {} traffic, {:.4g} units a node and cycle", curve.setting.pattern, curve.rows.back().offered);
  view.extent = ulfm::fabric::measure(curve.topology);
  view.ranks.resize(curve.topology.nodes());
  view.use = curve.rows.back().use;
  return topo::svg_of(view);
}

}  // namespace sim
