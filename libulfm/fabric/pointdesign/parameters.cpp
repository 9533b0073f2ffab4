#include "fabric/pointdesign/parameters.hpp"

#include <fmt/format.h>

namespace ulfm::fabric::pointdesign {
namespace {

Result<void> within(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return fail(Errc::invalid, fmt::format("{} is {}; it is {} to {}", name, value, least, most));
}

}  // namespace

Result<void> check(const Parameters& p) {
  for (const auto& ok :
       {within("the number of dimensions", p.dimensions, 1, kMostDimensions),
        within("the number of cards in a dimension", p.radix, 2, kMostRadix),
        within("the number of processors of a card", p.processors, 1, kMostProcessors),
        within("the number of messages on their way", p.frames, 1, 1u << 28),
        within("the number of copies on their way", p.copies, p.frames, 1u << 28),
        within("flits", p.flits, 1, kMostFlits), within("buffer", p.buffer, 0, 1024),
        within("timeout", p.timeout, 1, 1u << 30), within("queues", p.queues, 0, std::uint64_t{p.dimensions} * p.radix),
        within("speed", p.speed, 0, 4096), within("dma", p.dma, 1, 1u << 20), within("cycle", p.cycle, 1, 1000000)})
    if (!ok) return ok;
  std::uint64_t cards = 1;
  for (std::uint32_t s = 0; s < p.dimensions; ++s) {
    cards *= p.radix;
    if (cards > kMostCards)
      return fail(Errc::invalid, fmt::format("{} dimensions of {} cards are more than the {} cards there can be",
                                             p.dimensions, p.radix, kMostCards));
  }
  if (p.switching > Switching::wormhole || p.policy > Policy::through)
    return fail(Errc::invalid, "the switching or the priority is none that there is");
  return {};
}

}  // namespace ulfm::fabric::pointdesign
