#include "transport/ofi/ofi.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "transport/hosts/transport.hpp"
#include "transport/ofi/network.hpp"

namespace ulfm {

namespace ofi {
namespace {

/// Sleeps on what libfabric waits on. The owner's last look makes it ready for that (OfiNetwork::has_frame).
class OfiSource final : public WakeSource {
 public:
  OfiSource(OfiNetwork& network, OfiPort& port) : network_(network), port_(port) {}

  void arm() noexcept override { port_.is_awaited.store(true, std::memory_order_relaxed); }
  void cancel() noexcept override {
    port_.is_awaited.store(false, std::memory_order_relaxed);
    OfiNetwork::forget_rings(port_);
  }
  bool sleep(std::chrono::nanoseconds limit) noexcept override {
    const bool came = OfiNetwork::sleep(port_, limit);
    OfiNetwork::forget_rings(port_);
    return came;
  }
  void ring() noexcept override { OfiNetwork::ring(port_); }
  int descriptor() const noexcept override { return port_.set.get(); }

  void watch() noexcept override {
    std::uint64_t times = 0;
    (void)!read(port_.watched.get(), &times, sizeof times);
    watched_from_ = port_.arrivals.load(std::memory_order_acquire);
    port_.is_watched.store(true, std::memory_order_relaxed);
  }
  // What the owner takes in and a ring that is still for the owner would end each sleep on the port: naps then.
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override {
    const auto until = Clock::now() + limit;
    for (;;) {
      const bool looked = network_.look_beside(port_);
      if (!port_.is_watched.load(std::memory_order_relaxed)) return true;
      if (port_.arrivals.load(std::memory_order_acquire) != watched_from_) return true;
      const auto left = until - Clock::now();
      if (left.count() <= 0) return false;
      const auto nap = std::min<std::chrono::nanoseconds>(left, kLongestNap);
      if (looked && !port_.is_rung.load(std::memory_order_relaxed))
        (void)OfiNetwork::sleep(port_, nap, port_.watched.get());
      else std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(nap, kShortNap));
    }
  }
  void end_watch() noexcept override {
    port_.is_watched.store(false, std::memory_order_relaxed);
    OfiNetwork::ring_watcher(port_);
  }

 private:
  static constexpr std::chrono::milliseconds kLongestNap{20};
  OfiNetwork& network_;
  OfiPort& port_;
  std::uint64_t watched_from_ = 0;
};

class OfiInlet final : public hosts::NetworkInlet<OfiNetwork, OfiPort, OfiSource> {
 public:
  using NetworkInlet::NetworkInlet;
  bool take_given_up(Error& error) override { return network_->take_given_up(*port_, error); }
};

class OfiOutlet final : public Outlet {
 public:
  OfiOutlet(std::shared_ptr<OfiNetwork> network, std::shared_ptr<OfiOutgoing> connection, ProcessId peer,
            PortCounters& counters)
      : network_(std::move(network)),
        connection_(std::move(connection)),
        peer_(peer),
        counters_(counters),
        max_frame_(std::clamp<std::size_t>(connection_->welcome.most, 256, network_->max_frame())) {}
  ~OfiOutlet() override { network_->retire(std::move(connection_)); }

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    const bool gone = network_->push(*connection_, kind, header, data, length);
    (gone ? counters_.open_frames : counters_.full).add();
    return gone;
  }
  std::size_t max_frame(std::size_t) const override { return max_frame_; }
  bool peer_listening() const override { return network_->peer_listening(*connection_); }
  bool port_closed() const override { return connection_->closed.load(std::memory_order_relaxed); }
  ProcessId peer() const override { return peer_; }
  bool bye() override {
    Gather none;
    return push(Kind::bye, {}, none, 0);
  }

 private:
  std::shared_ptr<OfiNetwork> network_;
  std::shared_ptr<OfiOutgoing> connection_;
  ProcessId peer_;
  PortCounters& counters_;
  std::size_t max_frame_;  ///< the shorter of both ends' longest: jobs that connect may have other settings
};

using OfiTransport = hosts::NetworkTransport<OfiNetwork, OfiInlet, OfiOutlet>;

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto settings = hosts::settings_from(config);
  if (!settings) return fail(settings.error());
  if (!settings->congestion.empty())
    return fail(Errc::invalid,
                fmt::format("ULFM_CONGESTION=\"{}\" is for TCP connections of ULFM's own (transport tcp); "
                            "those of libfabric have the system's congestion control",
                            settings->congestion));
  auto network = OfiNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<OfiTransport>(std::move(*network));
}

std::string why_unavailable() {
  auto library = fabric_library();
  return library ? "" : library.error().what;
}

}  // namespace
}  // namespace ofi

const TransportDescriptor ofi_transport{
    .name = "ofi",
    .summary = "other hosts over libfabric: TCP on Ethernet",
    .reliable = true,
    .ordered = true,
    .multicast = false,
    .multi_host = true,
    .max_frame = hosts::kLongestFrame,
    .latency_us = 10,
    .bandwidth_MBps = 3000,
    .config_rows = "INTERFACE PORTS FRAME PEERS GIVE_UP",
    .takes_options = true,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = ofi::why_unavailable,
    .make = ofi::make,
};

}  // namespace ulfm
