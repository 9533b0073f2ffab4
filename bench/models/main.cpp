// How fast the models are by themselves: the same frames through reference and production model, no program around
// them.
// Lines "model load kind what per_second".
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fabric/xswitch/network.hpp"
#include "fabric/xswitch/reference.hpp"

namespace {

using namespace ulfm::fabric;
using namespace ulfm::fabric::xswitch;

struct Frame {
  std::uint32_t from, to, bytes;
};

// What is sent: so many frames, all injected when the network is idle, then again.
struct Load {
  std::string name;
  std::string topology;
  std::vector<Frame> frames;
};

Load stream(const std::string& name, const std::string& topology, std::uint32_t to, std::uint32_t frames,
            std::uint32_t bytes) {
  return {name, topology, std::vector<Frame>(frames, {0, to, bytes})};
}

Load random_traffic(const std::string& topology, std::uint32_t nodes, std::uint32_t frames) {
  std::mt19937 random(1);
  Load load{"random", topology, {}};
  for (std::uint32_t i = 0; i < frames; ++i) {
    const std::uint32_t from = static_cast<std::uint32_t>(random() % nodes);
    load.frames.push_back({from, static_cast<std::uint32_t>((from + 1 + random() % (nodes - 1)) % nodes),
                           static_cast<std::uint32_t>(1 + random() % 1024)});
  }
  return load;
}

void must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "ulfm_bench_models: %s\n", what.c_str());
  std::exit(1);
}

// Repeats a pass for a quarter of a second at least; passes per second.
double passes_per_second(const std::function<void()>& pass) {
  using Clock = std::chrono::steady_clock;
  pass();
  const auto start = Clock::now();
  std::uint64_t passes = 0;
  std::chrono::duration<double> spent{};
  for (; spent.count() < 0.25; spent = Clock::now() - start, ++passes) pass();
  return static_cast<double>(passes) / spent.count();
}

void say(const Load& load, const char* kind, const char* what, double value) {
  std::printf("xswitch %s %s %s %.6g\n", load.name.c_str(), kind, what, value);
}

void measure_production(const Load& load, const Topology& topology, const Routes& routes) {
  const auto frames = static_cast<std::uint32_t>(load.frames.size());
  const std::size_t bytes = Network::bytes(topology, Parameters{}, frames);
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), &std::free);
  std::fill_n(memory.get(), bytes, std::byte{});
  auto network = Network::create(memory.get(), topology, Parameters{}, frames);
  must(network.has_value(), "no network");
  std::vector<Ending> endings(frames);
  const auto pass = [&] {
    for (std::uint32_t f = 0; f < frames; ++f)
      must(network->inject(f, load.frames[f].from, routes.between(load.frames[f].from, load.frames[f].to),
                           load.frames[f].bytes),
           "a frame was refused");
    std::size_t ended = 0;
    while (ended < frames) ended += network->run(~std::uint64_t{0}, endings);
  };
  const double passes = passes_per_second(pass);
  const std::uint64_t events = network->events(), cycles = network->now(), left = network->balance().entered;
  pass();
  say(load, "production", "units", static_cast<double>(network->balance().entered - left) * passes);
  say(load, "production", "cycles", static_cast<double>(network->now() - cycles) * passes);
  say(load, "production", "events", static_cast<double>(network->events() - events) * passes);
}

void measure_reference(const Load& load, const Topology& topology, const Routes& routes) {
  Reference network(topology, Parameters{});
  const auto pass = [&] {
    for (std::uint32_t f = 0; f < load.frames.size(); ++f)
      network.inject(f, load.frames[f].from, routes.between(load.frames[f].from, load.frames[f].to),
                     load.frames[f].bytes);
    while (!network.empty()) network.step();
  };
  const double passes = passes_per_second(pass);
  const std::uint64_t cycles = network.now(), entered = network.balance().entered;
  pass();
  say(load, "reference", "units", static_cast<double>(network.balance().entered - entered) * passes);
  say(load, "reference", "cycles", static_cast<double>(network.now() - cycles) * passes);
}

}  // namespace

int main() {
  const Load loads[] = {stream("small", "single:2", 1, 16, 16), stream("long", "chain:5", 5, 128, 8192),
                        random_traffic("mesh:4x4", 16, 512)};
  for (const Load& load : loads) {
    const auto topology = read_topology(load.topology);
    must(topology.has_value(), "no topology " + load.topology);
    const auto routes = compute_routes(*topology);
    must(routes.has_value(), "no routes in " + load.topology);
    measure_production(load, *topology, *routes);
    measure_reference(load, *topology, *routes);
  }
  return 0;
}
