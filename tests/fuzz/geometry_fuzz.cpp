// The header of a port's segment, written by another process: a geometry that is believed leads nowhere
// outside.
#include "fuzz.hpp"
#include "transport/direct/layout.hpp"

using namespace ulfm;
using namespace ulfm::direct;

namespace {
std::string text_of(const PortGeometry& g) { return {reinterpret_cast<const char*>(&g), sizeof g}; }
}  // namespace

std::vector<std::string> fuzz_seeds() {
  PortGeometry original{};
  original.depth = 1;
  original.lanes = 0;
  return {text_of(normalised({})), text_of(normalised(original)),
          text_of({65536, 1u << 21, 4096, 65536, 1u << 26, 1, 1u << 24, 65536})};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  PortGeometry g = FuzzInput(bytes, size).take<PortGeometry>();
  if (is_sane(g)) {
    const Layout at(g);
    std::size_t end = sizeof(PortHeader);
    const auto follows = [&](std::size_t from, std::size_t bytes_there) {
      must(from >= end && from % kPage == 0, "parts follow each other, by pages");
      end = from + bytes_there;
    };
    follows(at.slots, std::size_t{g.depth} * g.slot_bytes);
    follows(at.controls, std::size_t{g.lanes} * sizeof(LaneControl));
    follows(at.peers, std::size_t{g.peers} * sizeof(PeerRecord));
    for (std::uint32_t lane = 0; lane < g.lanes && lane < 3; ++lane)
      follows(at.lanes + lane * at.lane_size, std::size_t{g.lane_cells} * sizeof(Cell) + g.lane_bytes);
    must(at.lanes <= at.end && end <= at.end && at.end < std::size_t{1} << 40, "and end inside the segment");
    const OpenMemory ring{nullptr, nullptr, g.depth, g.slot_bytes};
    must(ring.room(255) < g.slot_bytes, "a header of 255 bytes has room in a slot");
    must(g.max_frame > 0, "a sender comes to an end");
  }
  // Settings come with bounds of their own (PortGeometry::from); what they allow is made sane.
  g.depth %= 65537, g.slot_bytes %= (1u << 21) - 63, g.lanes %= 4097, g.lane_cells %= 65537,
      g.lane_bytes %= (1u << 26) + 1, g.peers %= 65537;
  if (std::size_t{g.slot_bytes} * 4 <= 1u << 26) must(is_sane(normalised(g)), "what we make ourselves is sane");
  return 0;
}
