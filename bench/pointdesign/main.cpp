// The point design at its full size, by its production model alone: broadcasts, and traffic under each policy.
//
// usage: ulfm_bench_pointdesign [broadcast|all-to-all|traffic [store|wormhole [POLICY [FLITS [RADIX]]]]]
//
// A line of a table for each run: messages of coprocessors, messages on lines, cycles, and what the run took here.
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "fabric/pointdesign/network.hpp"

namespace {

using namespace ulfm::fabric;
using namespace ulfm::fabric::pointdesign;

constexpr const char* kPolicies[] = {"farthest", "longest", "history", "through"};
constexpr const char* kSwitchings[] = {"store", "wormhole"};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "ulfm_bench_pointdesign: %s\n", why.c_str());
  std::exit(1);
}

/// A machine of the design's size in memory of its own; pages that nothing touches cost nothing.
class Machine {
 public:
  explicit Machine(const Parameters& p) : bytes_(Network::bytes(p)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) stop(fmt::format("there is no room for a machine of {} bytes", bytes_));
    auto* base = static_cast<std::byte*>(memory_);
    Network::create(base, p);
    auto network = Network::attach(base, bytes_);
    if (!network) stop(network.error().what);
    network_ = std::make_unique<Network>(std::move(*network));
  }
  ~Machine() { munmap(memory_, bytes_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Network& network() { return *network_; }

 private:
  std::size_t bytes_;
  void* memory_;
  std::unique_ptr<Network> network_;
};

/// Of this process, in seconds: other programs' does not count.
double processor_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Latency {
  std::uint64_t count = 0, sum = 0, most = 0;
  void add(std::uint64_t cycles) { ++count, sum += cycles, most = std::max(most, cycles); }
};

/// Runs until nothing moves; `ended` may send more.
Latency drain(Network& network, const std::vector<std::uint64_t>& sent,
              const std::function<void(const Ending&)>& ended) {
  Latency latency;
  std::vector<Ending> endings(4096);
  while (!network.idle()) {
    const std::size_t n = network.run(1 << 16, endings);
    for (std::size_t i = 0; i < n; ++i) {
      if (!endings[i].delivered) stop("a message was lost");
      latency.add(endings[i].cycle - sent[endings[i].frame]);
      if (ended) ended(endings[i]);
    }
  }
  return latency;
}

void report(const std::string& load, const Parameters& p, Network& network, const Latency& latency, double began) {
  std::uint64_t lines = 0, refused = 0, timeouts = 0, most = 0;
  const CardGeometry& g = network.geometry();
  for (std::uint32_t line = 0; line < g.lines(); ++line) {
    lines += network.line(line).messages, refused += network.line(line).refused;
    for (std::uint32_t q = 0; q <= p.processors; ++q) {
      timeouts += network.queue(line, q).timeouts;
      most = std::max<std::uint64_t>(most, network.queue(line, q).most);
    }
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double spent = processor_time() - began;
  std::printf("%-22s %-8s %-8s %5u %10llu %10llu %8llu %9.1f %8llu %8llu %9llu %7llu %7.2f %6ld\n", load.c_str(),
              kSwitchings[static_cast<int>(p.switching)], kPolicies[static_cast<int>(p.policy)], p.flits,
              static_cast<unsigned long long>(network.totals().messages), static_cast<unsigned long long>(lines),
              static_cast<unsigned long long>(network.now()),
              static_cast<double>(latency.sum) / static_cast<double>(std::max<std::uint64_t>(latency.count, 1)),
              static_cast<unsigned long long>(latency.most), static_cast<unsigned long long>(most),
              static_cast<unsigned long long>(timeouts), static_cast<unsigned long long>(refused), spent,
              usage.ru_maxrss / 1024);
  std::fflush(stdout);
}

void broadcast(Parameters p) {
  const auto began = processor_time();
  p.frames = 1, p.copies = p.geometry().cards;
  Machine machine(p);
  if (!machine.network().inject_broadcast(0, 0, 8)) stop("the broadcast is not taken");
  const Latency latency = drain(machine.network(), {0}, nullptr);
  report("broadcast", p, machine.network(), latency, began);
}

/// The same by unicasts along a binomial tree: whoever has it sends it on.
void tree(Parameters p) {
  const auto began = processor_time();
  const std::uint32_t nodes = p.geometry().nodes();
  p.frames = p.copies = nodes;
  Machine machine(p);
  Network& network = machine.network();
  std::vector<std::uint64_t> sent(nodes, 0);
  const auto send_on = [&](std::uint32_t node) {
    std::uint32_t bit = 1;
    while (bit <= node) bit *= 2;
    std::uint32_t largest = bit;
    while (std::uint64_t{largest} * 2 + node < nodes) largest *= 2;
    for (; largest >= bit; largest /= 2) {
      if (node + largest >= nodes) continue;
      sent[node + largest] = network.now();
      if (!network.inject(node + largest, node, node + largest, 8)) stop("a message is not taken");
    }
  };
  send_on(0);
  const Latency latency = drain(network, sent, [&](const Ending& ending) { send_on(ending.node); });
  report("unicasts in a tree", p, network, latency, began);
}

void all_to_all(Parameters p) {
  const auto began = processor_time();
  const CardGeometry g = p.geometry();
  p.frames = g.nodes(), p.copies = g.nodes() * g.cards;
  Machine machine(p);
  for (std::uint32_t node = 0; node < g.nodes(); ++node)
    if (!machine.network().inject_broadcast(node, node, 8)) stop("a broadcast is not taken");
  const Latency latency = drain(machine.network(), std::vector<std::uint64_t>(g.nodes(), 0), nullptr);
  report("all-to-all broadcast", p, machine.network(), latency, began);
}

/// Everybody sends 64 messages, one in eight of them to one card, all at once.
void traffic(Parameters p) {
  const auto began = processor_time();
  const CardGeometry g = p.geometry();
  p.frames = p.copies = g.nodes() * 64;
  Machine machine(p);
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (FrameId frame = 0; frame < p.frames; ++frame) {
    const std::uint32_t from = frame % g.nodes();
    std::uint32_t to = below(8) == 0 ? (g.cards / 2) * g.processors + below(g.processors) : below(g.nodes());
    if (to == from) to = (to + 1) % g.nodes();
    if (!machine.network().inject(frame, from, to, 8)) stop("a message is not taken");
  }
  const Latency latency = drain(machine.network(), std::vector<std::uint64_t>(p.frames, 0), nullptr);
  report("64 each, 1 in 8 to one", p, machine.network(), latency, began);
}

template <std::size_t N>
std::uint32_t number_of(const std::string& word, const char* const (&words)[N]) {
  for (std::uint32_t i = 0; i < N; ++i)
    if (word == words[i]) return i;
  stop("\"" + word + "\" is unknown; there is: store, wormhole; farthest, longest, history, through");
}

void run(const std::string& load, const Parameters& p) {
  if (load == "broadcast") broadcast(p), tree(p);
  else if (load == "all-to-all") all_to_all(p);
  else if (load == "traffic") traffic(p);
  else stop("\"" + load + "\" is no load; there is: broadcast, all-to-all, traffic");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> loads{"broadcast", "all-to-all", "traffic"};
  if (argc > 1) loads = {argv[1]};
  const std::uint32_t radix = argc > 5 ? static_cast<std::uint32_t>(std::strtoul(argv[5], nullptr, 10)) : 40;
  std::vector<std::uint32_t> switchings{0, 1}, policies{0, 1, 2, 3}, flits{2};
  if (argc > 2) switchings = {number_of(argv[2], kSwitchings)};
  if (argc > 3) policies = {number_of(argv[3], kPolicies)};
  if (argc > 4) flits = {static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10))};
  std::printf("%-22s %-8s %-8s %5s %10s %10s %8s %9s %8s %8s %9s %7s %7s %6s\n", "load", "switch", "priority", "flits",
              "messages", "on lines", "cycles", "mean", "longest", "queue", "timeouts", "refused", "seconds", "MiB");
  for (const std::string& load : loads)
    for (const std::uint32_t f : flits)
      for (const std::uint32_t s : switchings)
        for (const std::uint32_t policy : policies) {
          Parameters p;
          p.frames = p.copies = 1;
          p.radix = radix;
          p.switching = static_cast<Switching>(s), p.policy = static_cast<Policy>(policy), p.flits = f;
          if (auto ok = check(p); !ok) stop(ok.error().what);
          run(load, p);
        }
  return 0;
}
