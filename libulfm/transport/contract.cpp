#include "transport/contract.hpp"

namespace ulfm {

PortGeometry PortGeometry::from(const Config& config) {
  PortGeometry g;
  const auto take = [&](const char* row) { return static_cast<std::uint32_t>(config.number(row)); };
  g.depth = take("DEPTH");
  g.slot_bytes = take("SLOT");
  g.lanes = take("LANES");
  g.lane_cells = take("LANE_CELLS");
  g.lane_bytes = take("LANE_BYTES");
  g.lane_after = take("LANE_AFTER");
  g.max_frame = take("FRAME");
  g.peers = take("PEERS");
  return g;
}

}  // namespace ulfm
