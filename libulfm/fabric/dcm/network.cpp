#include "fabric/dcm/network.hpp"

#include <fmt/format.h>

#include <cstring>

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::dcm {
namespace {

constexpr std::uint64_t kMagic = 0x3144'434d'2d63'7562;
constexpr std::uint32_t kMostFrames = 1u << 22;

}  // namespace

CircuitCounters Network::counters(std::uint32_t router, std::uint32_t way) {
  if (router >= g_.routers || way >= kWays) return {};
  const std::uint64_t now = header().now;
  const std::uint32_t index = out_index(router, way);
  const Out& out = arena_.out(index);
  CircuitCounters sum = out.counters;
  for (std::uint32_t in = 0; in < kWays; ++in)
    if ((out.asking >> in & 1) != 0) sum.blocked_cycles += now - out.asked[in];
  if (out.holder >= g_.frames) return sum;
  const CubeMessage& m = arena_.message(out.holder);
  sum.held_cycles += now - out.granted;
  if (is_sink(index)) {
    sum.words += arrived(m, now - 1);
  } else {
    sum.words += begun(m, at_source(now - 1, out.hop));
    sum.throttles += interrupted(m, at_source(now - 1, out.hop));
  }
  return sum;
}

WordBalance Network::balance() {
  const CubeHeader& h = header();
  for (std::uint32_t i = 0; i < g_.outs; ++i)
    if (is_sink(i)) settle(i, h.now - 1);
  WordBalance sum{h.entered, h.left, h.stripped, h.lost, 0};
  for (FrameId frame = 0; frame < g_.frames; ++frame) {
    const CubeMessage& m = arena_.message(frame);
    if (m.used != 1 || m.entered == 0) continue;
    const std::uint64_t sent = 1 + begun(m, static_cast<std::int64_t>(h.now) - 1);
    const Out& out = arena_.out(m.out);
    sum.entered += sent;
    sum.present += sent - (m.at_sink != 0 ? out.taken + out.ended : 0u);
  }
  return sum;
}

std::size_t Network::bytes(std::uint32_t dimension, std::uint32_t frames) {
  return CubeGeometry::of(dimension, frames).bytes;
}

Result<Network> Network::create(void* memory, std::uint32_t dimension, const Parameters& parameters,
                                std::uint32_t frames) {
  if (auto fine = dcm::check(parameters); !fine) return fail(std::move(fine.error()));
  if (dimension > kMaxDimensions || frames < 1 || frames > kMostFrames)
    return fail(Errc::invalid, fmt::format("a cube has 0 to {} dimensions and carries 1 to {} frames at a time; found "
                                           "{} and {}",
                                           kMaxDimensions, kMostFrames, dimension, frames));
  auto* header = static_cast<CubeHeader*>(memory);
  header->dimension = dimension;
  header->frames = frames;
  header->parameters = parameters;
  Network network(memory, CubeGeometry::of(dimension, frames), parameters);
  network.build();
  header->magic = kMagic;
  return network;
}

Result<Network> Network::attach(void* memory, std::size_t bytes) {
  if (bytes < sizeof(CubeHeader))
    return fail(Errc::protocol, fmt::format("a network needs more than {} bytes of memory", bytes));
  CubeHeader header;
  std::memcpy(&header, memory, sizeof header);
  if (header.magic != kMagic || header.dimension > kMaxDimensions || header.frames < 1 || header.frames > kMostFrames ||
      !dcm::check(header.parameters))
    return fail(Errc::protocol, "the memory does not hold a network of Direct-Connect routers");
  const CubeGeometry geometry = CubeGeometry::of(header.dimension, header.frames);
  if (geometry.bytes > bytes)
    return fail(Errc::protocol,
                fmt::format("the network there needs {} bytes of memory, and {} are mapped", geometry.bytes, bytes));
  return Network(memory, geometry, header.parameters);
}

}  // namespace ulfm::fabric::dcm
