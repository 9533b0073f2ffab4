#include "fabric/dcm/network.hpp"

#include <fmt/format.h>

#include <cstring>

#include "fabric/dcm/engine.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric::dcm {
namespace {

constexpr std::uint64_t kMagic = 0x3144'434d'2d63'7562;
constexpr std::uint32_t kMostFrames = 1u << 22;

}  // namespace

ChannelCounters CircuitEngine::counters(std::uint32_t router, std::uint32_t way) {
  const std::uint64_t now = header().now;
  const std::uint32_t index = out_index(router, way);
  const Out& out = arena_.out(index);
  ChannelCounters sum = out.counters;
  for (std::uint32_t in = 0; in < kWays; ++in)
    if ((out.asking >> in & 1) != 0) sum.blocked_cycles += now - out.asked[in];
  if (out.holder >= g_.frames) return sum;
  const Message& m = arena_.message(out.holder);
  sum.held_cycles += now - out.granted;
  if (is_sink(index)) {
    sum.words += arrived(m, now - 1);
  } else {
    sum.words += begun(m, at_source(now - 1, out.hop));
    sum.throttles += interrupted(m, at_source(now - 1, out.hop));
  }
  return sum;
}

Balance CircuitEngine::balance() {
  const Header& h = header();
  for (std::uint32_t i = 0; i < g_.outs; ++i)
    if (is_sink(i)) settle(i, h.now - 1);
  Balance sum{h.entered, h.left, h.stripped, h.lost, 0};
  for (FrameId frame = 0; frame < g_.frames; ++frame) {
    const Message& m = arena_.message(frame);
    if (m.used != 1 || m.entered == 0) continue;
    const std::uint64_t sent = 1 + begun(m, static_cast<std::int64_t>(h.now) - 1);
    const Out& out = arena_.out(m.out);
    sum.entered += sent;
    sum.present += sent - (m.at_sink != 0 ? out.taken + out.ended : 0u);
  }
  return sum;
}

// The public face.

std::size_t Network::bytes(std::uint32_t dimension, std::uint32_t frames) {
  return Geometry::of(dimension, frames).bytes;
}

Result<Network> Network::create(void* memory, std::uint32_t dimension, const Parameters& parameters,
                                std::uint32_t frames) {
  if (auto fine = dcm::check(parameters); !fine) return fail(std::move(fine.error()));
  if (dimension > kMaxDimensions || frames < 1 || frames > kMostFrames)
    return fail(Errc::invalid, fmt::format("a cube has 0 to {} dimensions and carries 1 to {} frames at a time; found "
                                           "{} and {}",
                                           kMaxDimensions, kMostFrames, dimension, frames));
  auto* header = static_cast<Header*>(memory);
  header->dimension = dimension;
  header->frames = frames;
  header->parameters = parameters;
  auto engine = std::make_unique<CircuitEngine>(memory, Geometry::of(dimension, frames), parameters);
  engine->build();
  header->magic = kMagic;
  return Network(std::move(engine));
}

Result<Network> Network::attach(void* memory, std::size_t bytes) {
  if (bytes < sizeof(Header))
    return fail(Errc::protocol, fmt::format("a network needs more than {} bytes of memory", bytes));
  Header header;
  std::memcpy(&header, memory, sizeof header);
  if (header.magic != kMagic || header.dimension > kMaxDimensions || header.frames < 1 || header.frames > kMostFrames ||
      !dcm::check(header.parameters))
    return fail(Errc::protocol, "the memory does not hold a network of Direct-Connect routers");
  const Geometry geometry = Geometry::of(header.dimension, header.frames);
  if (geometry.bytes > bytes)
    return fail(Errc::protocol,
                fmt::format("the network there needs {} bytes of memory, and {} are mapped", geometry.bytes, bytes));
  return Network(std::make_unique<CircuitEngine>(memory, geometry, header.parameters));
}

Network::Network(std::unique_ptr<CircuitEngine> engine) noexcept : engine_(std::move(engine)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

bool Network::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins) {
  return engine_->inject(frame, from, to, bytes, begins);
}
std::size_t Network::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  return engine_->run(budget, endings, until);
}
void Network::catch_up(std::uint64_t until) { engine_->go_on(kNever, ~std::size_t{0}, until); }
void Network::stall(std::uint32_t end, std::uint64_t cycles) { engine_->stall(end, cycles); }
void Network::set_channel(std::uint32_t router, std::uint32_t way, bool up) { engine_->set_channel(router, way, up); }
void Network::set_router(std::uint32_t router, bool alive) { engine_->set_router(router, alive); }
bool Network::reaches(std::uint32_t from, std::uint32_t to) const noexcept { return engine_->reaches(from, to); }
bool Network::damaged() const noexcept { return engine_->header().damaged != 0; }
bool Network::idle() const noexcept { return next_event() == kNever; }
std::uint64_t Network::next_event() const noexcept { return engine_->next_event(); }
std::uint32_t Network::ended() const noexcept { return engine_->header().ended; }
std::uint32_t Network::frames_inside() const noexcept { return engine_->header().inside; }
std::uint64_t Network::now() const noexcept { return engine_->header().now; }
std::uint64_t Network::events() const noexcept { return engine_->header().events; }
ChannelCounters Network::counters(std::uint32_t router, std::uint32_t way) {
  if (router >= engine_->geometry().routers || way >= kWays) return {};
  return engine_->counters(router, way);
}
Balance Network::balance() { return engine_->balance(); }

}  // namespace ulfm::fabric::dcm
