#include "fabric/dcm/parameters.hpp"

#include <fmt/format.h>

namespace ulfm::fabric::dcm {

Result<void> check(const Parameters& p) {
  constexpr std::uint32_t kMostTime = 1u << 24;
  if (p.hop_cycles < 1 || p.hop_cycles > kMostHopCycles)
    return fail(Errc::invalid, fmt::format("a hop takes 1 to {} cycles, not {}", kMostHopCycles, p.hop_cycles));
  if (p.dma_cycles < 1 || p.dma_cycles > 5)
    return fail(Errc::invalid,
                fmt::format("a node takes a 32-bit word in 1 to 5 cycles, not {}: a slower one could not keep up with "
                            "its channel",
                            p.dma_cycles));
  if (p.route_cycles > kMostTime || p.send_cycles > kMostTime || p.receive_cycles > kMostTime)
    return fail(Errc::invalid, fmt::format("no step takes more than {} cycles", kMostTime));
  if (p.fifo_words > kMostFifoWords)
    return fail(Errc::invalid, fmt::format("a FIFO has at most {} words, not {}", kMostFifoWords, p.fifo_words));
  if (p.go_at < 1 || p.stop_at > kMostFifoWords || p.stop_at < p.go_at + 4)
    return fail(Errc::invalid, fmt::format("a sink that was not ready is ready again with at least 1 word and 4 fewer "
                                           "than it stopped at, but found go={} and stop={}: lower go or raise stop",
                                           p.go_at, p.stop_at));
  if (p.fifo_words < p.stop_at + headroom(p.hop_cycles))
    return fail(
        Errc::invalid,
        fmt::format("a FIFO can overflow: with fifo={}, stop={} and {} cycles a hop it needs {} words: lower stop "
                    "or raise fifo",
                    p.fifo_words, p.stop_at, p.hop_cycles, p.stop_at + headroom(p.hop_cycles)));
  return {};
}

}  // namespace ulfm::fabric::dcm
