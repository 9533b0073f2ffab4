#include "transport/tcp/tcp.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/hosts/transport.hpp"
#include "transport/tcp/network.hpp"

namespace ulfm {

namespace tcp {
namespace {

// Below, asking first costs more than copying what comes before its receive (decision 0031).
constexpr std::size_t kEagerLimit = 320 * 1024;

/// Sleeps on the sockets of a port.
class TcpSource final : public WakeSource {
 public:
  TcpSource(TcpNetwork& network, TcpPort& port)
      : network_(network), port_(port), watch_over_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void arm() noexcept override { port_.is_awaited.store(true, std::memory_order_relaxed); }
  void cancel() noexcept override {
    port_.is_awaited.store(false, std::memory_order_relaxed);
    TcpNetwork::forget_rings(port_);
  }
  bool sleep(std::chrono::nanoseconds limit) noexcept override {
    const bool came = TcpNetwork::sleep(port_, limit);
    TcpNetwork::forget_rings(port_);
    return came;
  }
  void ring() noexcept override { TcpNetwork::ring(port_); }
  int descriptor() const noexcept override { return port_.set.get(); }

  void watch() noexcept override {
    std::uint64_t times = 0;
    (void)!read(watch_over_.get(), &times, sizeof times);
    watched_from_ = port_.arrivals.load(std::memory_order_acquire);
    watching_.store(true, std::memory_order_relaxed);
  }
  // What the owner takes in meanwhile counts too; it rings nobody, so a sleep is short.
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override {
    const auto until = Clock::now() + limit;
    for (;;) {
      const bool looked = network_.look_beside(port_);
      if (!watching_.load(std::memory_order_relaxed)) return true;
      if (port_.arrivals.load(std::memory_order_acquire) != watched_from_) return true;
      const auto left = until - Clock::now();
      if (left.count() <= 0) return false;
      const auto nap = std::min<std::chrono::nanoseconds>(left, kLongestNap);
      // What the owner has left lying, and a ring for it, would end each sleep on the port.
      if (looked && !port_.is_rung.load(std::memory_order_relaxed))
        (void)TcpNetwork::sleep(port_, nap, watch_over_.get());
      else std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(nap, kShortNap));
    }
  }
  void end_watch() noexcept override {
    watching_.store(false, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    (void)!write(watch_over_.get(), &one, sizeof one);
  }

 private:
  static constexpr std::chrono::milliseconds kLongestNap{20};
  TcpNetwork& network_;
  TcpPort& port_;
  const Fd watch_over_;  ///< without one a watcher learns of its end after a nap
  std::uint64_t watched_from_ = 0;
  std::atomic<bool> watching_{false};
};

class TcpInlet final : public hosts::NetworkInlet<TcpNetwork, TcpPort, TcpSource> {
 public:
  using NetworkInlet::NetworkInlet;
  bool next_at_hand(Frame& frame) override { return network_->next_at_hand(*port_, frame); }
  bool take_given_up(Error& error) override { return network_->take_given_up(*port_, error); }
  void use_places(PlaceFinder& finder) override { port_->places = &finder; }
};

class TcpOutlet final : public Outlet {
 public:
  TcpOutlet(std::shared_ptr<TcpNetwork> network, std::shared_ptr<TcpLink> link, ProcessId peer, PortCounters& counters)
      : network_(std::move(network)),
        link_(std::move(link)),
        peer_(peer),
        counters_(counters),
        most_(std::max<std::size_t>(link_->most, 256)) {}
  ~TcpOutlet() override { network_->retire(link_); }

  bool push(Kind kind, std::span<const std::byte> header, Gather& data, std::size_t length) override {
    const bool gone = network_->push(*link_, kind, header, data, length);
    (gone ? counters_.open_frames : counters_.full).add();
    return gone;
  }
  std::size_t max_frame(std::size_t header) const override {
    return header == 0 ? most_ : std::min(most_, network_->max_whole());
  }
  std::size_t max_begin(std::size_t) const override { return most_; }
  std::size_t eager_limit() const override { return kEagerLimit; }
  bool peer_listening() const override { return network_->peer_listening(*link_); }
  bool port_closed() const override { return link_->closed.load(std::memory_order_relaxed); }
  bool has_broken() const override {
    return link_->closed.load(std::memory_order_acquire) && !link_->is_closed_by_word.load(std::memory_order_relaxed);
  }
  ProcessId peer() const override { return peer_; }
  bool bye() override {
    Gather none;
    return push(Kind::bye, {}, none, 0);
  }

 private:
  std::shared_ptr<TcpNetwork> network_;
  std::shared_ptr<TcpLink> link_;
  ProcessId peer_;
  PortCounters& counters_;
  std::size_t most_;  ///< jobs that connect may have other settings
};

using TcpTransport = hosts::NetworkTransport<TcpNetwork, TcpInlet, TcpOutlet>;

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto settings = hosts::settings_from(config);
  if (!settings) return fail(settings.error());
  auto network = TcpNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<TcpTransport>(std::move(*network));
}

}  // namespace
}  // namespace tcp

Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame) {
  Config own = config;
  if (auto ok = own.set("TRANSPORT", tcp_transport.name, Origin::command_line, ""); !ok) return fail(ok.error());
  auto settings = hosts::settings_from(own);
  if (!settings) return fail(settings.error());
  settings->max_frame = std::max(settings->max_frame, frame);
  settings->max_whole = frame;
  settings->in_one_piece = true;
  auto network = tcp::TcpNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<tcp::TcpTransport>(std::move(*network), tcp::kNetworkPorts);
}

const TransportDescriptor tcp_transport{
    .name = "tcp",
    .summary = "other hosts over TCP, on Ethernet",
    .reliable = true,
    .ordered = true,
    .multicast = false,
    .multi_host = true,
    .max_frame = hosts::kLongestFrame,
    .latency_us = 7,
    .bandwidth_MBps = 3000,
    .config_rows = "INTERFACE PORTS CONGESTION FRAME PEERS GIVE_UP",
    .takes_options = false,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = [] { return std::string(); },
    .make = tcp::make,
};

}  // namespace ulfm
