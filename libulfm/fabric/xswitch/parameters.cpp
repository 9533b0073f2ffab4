#include "fabric/xswitch/parameters.hpp"

#include <fmt/format.h>

namespace ulfm::fabric::xswitch {

Result<void> check(const Parameters& p) {
  if (p.link_cycles < 1 || p.link_cycles > kMostLinkCycles)
    return fail(Errc::invalid, fmt::format("a unit's way over a link takes 1 to {} cycles, not {} (on a link with a "
                                           "rate of k cycles a unit that is its latency and k - 1)",
                                           kMostLinkCycles, p.link_cycles));
  if (p.unit_cycles < 1 || p.unit_cycles > kMostUnitCycles)
    return fail(Errc::invalid,
                fmt::format("a unit keeps a link busy for 1 to {} cycles, not {}", kMostUnitCycles, p.unit_cycles));
  if (p.check_units > kMostCheckUnits)
    return fail(Errc::invalid,
                fmt::format("a frame has at most {} check units, not {}", kMostCheckUnits, p.check_units));
  if (p.fifo_units > kMostFifoUnits)
    return fail(Errc::invalid, fmt::format("a FIFO has at most {} units, not {}", kMostFifoUnits, p.fifo_units));
  if (p.stop_at < 1 || p.go_at >= p.stop_at)
    return fail(Errc::invalid, fmt::format("ID-GO is sent at a lower occupancy than ID-STOP, but found go={} and "
                                           "stop={}: lower go or raise stop",
                                           p.go_at, p.stop_at));
  const std::uint32_t needed = p.stop_at + headroom(p.link_cycles);
  if (p.stop_at > kMostFifoUnits || p.fifo_units < needed)
    return fail(
        Errc::invalid,
        fmt::format("a FIFO can overflow: with fifo={}, stop={} and links of {} cycles it needs {} units (stop, "
                    "twice the cycles of a link for what is on its way, and 1): lower stop or raise fifo",
                    p.fifo_units, p.stop_at, p.link_cycles, needed));
  return {};
}

}  // namespace ulfm::fabric::xswitch
