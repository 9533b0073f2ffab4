#include "transport/direct/layout.hpp"

#include <cinttypes>
#include <cstdio>

#include <fmt/core.h>

#include "transport/foreign_card.hpp"

namespace ulfm::direct {
namespace {
// A cell, the largest header there can be, and a line of data: anything smaller could not carry some frame.
constexpr std::uint32_t kLeastSlot = sizeof(Cell) + 256 + kLine;
}  // namespace

std::string encode(const DirectCard& card) {
  return fmt::format("direct:{:016x}{:016x}{:x}.{}.{}", card.host, card.token, card.started, card.pid, card.fd);
}

Result<DirectCard> decode(std::string_view text) {
  DirectCard card;
  int used = 0;
  // A bounded copy: the text comes from outside and need not end in a zero.
  const std::string copy(text.substr(0, 120));
  if (std::sscanf(copy.c_str(), "direct:%16" SCNx64 "%16" SCNx64 "%16" SCNx64 ".%" SCNd32 ".%" SCNd32 "%n", &card.host,
                  &card.token, &card.started, &card.pid, &card.fd, &used) != 5 ||
      static_cast<std::size_t>(used) != text.size() || card.pid <= 0 || card.fd < 0 || encode(card) != text)
    return fail(Errc::protocol, fmt::format("\"{}\" is no address of the direct transport{}", copy.substr(0, 60),
                                            foreign_card_remark("direct", copy)));
  return card;
}

PortGeometry PortGeometry::from(const Config& config) {
  PortGeometry g;
  const auto take = [&](const char* row) { return static_cast<std::uint32_t>(config.number(row)); };
  g.depth = take("DEPTH");
  g.slot_bytes = take("SLOT");
  g.lanes = take("LANES");
  g.lane_cells = take("LANE_CELLS");
  g.lane_bytes = take("LANE_BYTES");
  g.lane_after = take("LANE_AFTER");
  g.lane_when_full = config.origin("LANE_AFTER") == Origin::default_value ? 1 : 0;
  g.max_frame = take("FRAME");
  g.peers = take("PEERS");
  return g;
}

PortGeometry PortGeometry::with(const InletOptions& options) const {
  PortGeometry g = *this;
  if (options.slot != 0) g.slot_bytes = static_cast<std::uint32_t>(options.slot + sizeof(Cell));
  if (options.depth != 0) g.depth = options.depth;
  if (!options.shares_core) g.lane_when_full = 0;
  if (options.depth == 1) g.lanes = 0;  // the machine of the paper: one buffer each way, for whoever comes
  return g;
}

PortGeometry normalised(PortGeometry g) {
  const auto power = [](std::uint32_t n, std::uint32_t least) { return std::bit_ceil(std::max(n, least)); };
  g.depth = power(g.depth, 1);
  g.slot_bytes = static_cast<std::uint32_t>(up_to(std::max<std::uint32_t>(g.slot_bytes, kLeastSlot), kLine));
  g.lane_cells = power(g.lane_cells, 8);
  // A frame cut for a slot must fit a lane too, for the sender may get its lane in between.
  g.lane_bytes = power(std::max(g.lane_bytes, 4 * g.slot_bytes), 4096);
  // A frame and its largest header must fit the byte ring with room to spare, or two sizes could wait for ever.
  g.max_frame = std::min(std::max<std::uint32_t>(g.max_frame, 256), g.lane_bytes / 4);
  g.max_frame = std::max(g.max_frame, g.slot_bytes);
  g.peers = std::max<std::uint32_t>(g.peers, 2);
  return g;
}

bool is_sane(const PortGeometry& g) {
  return std::has_single_bit(g.depth) && g.depth <= 65536 && g.slot_bytes % kLine == 0 && g.slot_bytes >= kLeastSlot &&
         g.slot_bytes <= (1u << 21) && std::has_single_bit(g.lane_cells) && g.lane_cells <= 65536 &&
         std::has_single_bit(g.lane_bytes) && g.lane_bytes <= (1u << 26) && g.lanes <= 4096 && g.max_frame >= kLine &&
         g.max_frame <= g.lane_bytes / 4 && g.slot_bytes <= g.lane_bytes / 4 && g.peers >= 2 && g.peers <= 65536;
}

}  // namespace ulfm::direct
