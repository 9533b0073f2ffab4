#include "transport/emulated/transport.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/core.h>

#include "base/fnv.hpp"
#include "fabric/engine/discovery.hpp"
#include "transport/emulated/card.hpp"
#include "transport/emulated/inlet.hpp"
#include "transport/emulated/multicast.hpp"
#include "transport/emulated/outlet.hpp"
#include "transport/mux/mux.hpp"
#include "transport/proxy/agreement.hpp"
#include "transport/proxy/far.hpp"

namespace ulfm::emulated {
namespace {

// Of the name of a job; never 0.
std::uint64_t number_of(std::string_view job_id) { return fnv1a(job_id) | 1; }

class EmulatedTransport final : public Transport {
 public:
  explicit EmulatedTransport(std::unique_ptr<fabric::FabricEngine> engine)
      : engine_(std::move(engine)),
        card_(encode(EmulatedCard{engine_->arena().header().token, engine_->self(),
                                  engine_->arena().endpoint(engine_->self()).token})) {}

  const std::string& card() const override { return card_; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions&) override {
    if (number >= kPortsPerProcess)
      return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", number, kPortsPerProcess - 1));
    std::lock_guard lock(mutex_);
    fabric::FabricArena& arena = engine_->arena();
    if (arena.endpoint(engine_->self()).generation[number].load(std::memory_order_relaxed) % 2 == 1)
      return fail(Errc::busy, fmt::format("port {} is open already", number));
    if (auto ok = arena.commit_box(engine_->self(), number); !ok) return fail(ok.error());
    return std::make_unique<EmulatedInlet>(*engine_, number);
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    auto peer = decode(control::identity_of(card));
    if (!peer) return fail(peer.error());
    auto outlet = EmulatedOutlet::connect(*engine_, *peer, to, from, hello, counters);
    if (!outlet) return fail(outlet.error());
    return std::unique_ptr<Outlet>(std::move(*outlet));
  }

  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override {
    return EmulatedMulticast::make(*engine_, outlets);
  }

  std::size_t multicast_frame(std::size_t receivers, std::size_t header) const override {
    return EmulatedMulticast::frame(*engine_, receivers, header);
  }

  MulticastCost multicast_cost() const override {
    const fabric::ModelMulticast* const multicast = engine_->model().multicast();
    if (engine_->clock() == nullptr || multicast == nullptr) return {};
    const fabric::Durations& d = engine_->clock()->costs();
    return {d.send + d.receive, d.cycle / multicast->bytes_per_cycle(), multicast->places()};
  }

  void introduce(std::string_view job_id, std::uint32_t rank, std::string_view card) override {
    fabric::Endpoint& self = engine_->arena().endpoint(engine_->self());
    if (card.size() >= sizeof self.card) return;
    self.rank = rank;
    card.copy(self.card, card.size());
    self.card[card.size()] = 0;
    self.job_id.store(number_of(job_id), std::memory_order_release);  // pairs with card_of()
  }

  std::string card_of(std::string_view job_id, std::uint32_t rank) const override {
    const fabric::FabricArena& arena = engine_->arena();
    // Relaxed: a process that is not counted yet has shown no card, and one that has shown its card was counted before.
    const std::uint32_t used =
        std::min(arena.header().endpoints_used.load(std::memory_order_relaxed), arena.sizes().endpoints);
    const std::uint64_t wanted = number_of(job_id);
    for (std::uint32_t i = 0; i < used; ++i) {
      const fabric::Endpoint& one = arena.endpoint((rank + i) % used);                 // most likely near its rank
      if (one.job_id.load(std::memory_order_acquire) == wanted && one.rank == rank &&  // pairs with introduce()
          one.state.load(std::memory_order_relaxed) == fabric::EndpointState::ready)
        return {one.card, strnlen(one.card, sizeof one.card)};
    }
    return {};
  }

  std::string shared_statistics() override { return engine_->statistics(); }

 private:
  std::unique_ptr<fabric::FabricEngine> engine_;
  std::string card_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Transport> on(std::unique_ptr<fabric::FabricEngine> engine) {
  return std::make_unique<EmulatedTransport>(std::move(engine));
}

namespace {
// The way to the arena where that is on another host; nullptr where it is here. ulfmrun says so, or else the processes
// of the job agree.
Result<const proxy::DoorAddress*> find_door() {
  if (std::getenv("ULFM_FABRIC") == nullptr && spans_hosts()) return proxy::agreed_door();
  return proxy::door_of_this_job();
}
}  // namespace

std::vector<int> nodes(int size) {
  const auto found = find_door();
  if (!found) return {};
  const proxy::DoorAddress* const door = *found;
  auto arena = door == nullptr ? fabric::arena_of_this_job() : fail(Errc::unavailable, "");
  if (door == nullptr && !arena) return {};
  std::map<std::uint32_t, int> numbers;
  std::vector<int> node_of;
  for (int rank = 0; rank < size; ++rank) {
    const auto r = static_cast<std::uint32_t>(rank);
    const std::uint32_t node = door != nullptr ? door->nodes[r % door->nodes.size()] : arena->node_of_rank(r);
    node_of.push_back(numbers.try_emplace(node, static_cast<int>(numbers.size())).first->second);
  }
  return node_of;
}

TransportDescriptor descriptor(const fabric::ModelKind& kind,
                               Result<std::unique_ptr<Transport>> (*make)(const Config&)) {
  return {
      .name = kind.name,
      .summary = kind.summary,
      .reliable = true,
      .ordered = true,
      .multicast = kind.multicast,
      .multi_host = false,
      .max_frame = kind.frame,
      .latency_us = 1,
      .bandwidth_MBps = 5000,
      .config_rows = "TOPOLOGY",
      .takes_options = true,
      .links = true,
      .control = kind.control,
      .nodes = nodes,
      .unavailable = [] { return std::string(); },
      .make = make,
      .piece = kind.piece,
      .copies = kind.copies,
      .link_faults = kind.link_faults,
  };
}

Result<std::unique_ptr<Transport>> make(const Config& config, const char* model) {
  const auto door = find_door();
  if (!door) return fail(door.error());
  if (*door != nullptr) return proxy::make_far(config, **door, model);
  auto engine = fabric::FabricEngine::join();
  if (!engine) return fail(engine.error());
  const std::string_view found((*engine)->arena().header().model);
  if (found != model)
    return fail(Errc::invalid,
                fmt::format("this job was set up for the interconnect {}, not for {}; ulfmrun --transport sets both",
                            found, model));
  return on(std::move(*engine));
}

}  // namespace ulfm::emulated
