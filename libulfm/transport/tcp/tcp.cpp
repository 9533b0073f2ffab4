#include "transport/tcp/tcp.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "transport/tcp/network.hpp"

namespace ulfm {

namespace tcp {
namespace {

/// Sleeps on the sockets of a port.
class TcpSource final : public WakeSource {
 public:
  TcpSource(TcpNetwork& network, TcpPort& port) : network_(network), port_(port) {}

  void arm() noexcept override {}
  void cancel() noexcept override {}
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return TcpNetwork::sleep(port_, limit); }
  void ring() noexcept override { TcpNetwork::ring(port_); }
  int descriptor() const noexcept override { return port_.set.get(); }

  void watch() noexcept override {
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
      // What the owner has left lying keeps the sockets readable.
      if (looked) (void)TcpNetwork::sleep(port_, nap);
      else std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(nap, kShortNap));
    }
  }
  void end_watch() noexcept override {
    watching_.store(false, std::memory_order_relaxed);
    TcpNetwork::ring(port_);
  }

 private:
  static constexpr std::chrono::milliseconds kLongestNap{20};
  TcpNetwork& network_;
  TcpPort& port_;
  std::uint64_t watched_from_ = 0;
  std::atomic<bool> watching_{false};
};

class TcpInlet final : public Inlet {
 public:
  TcpInlet(std::shared_ptr<TcpNetwork> network, std::unique_ptr<TcpPort> port)
      : network_(std::move(network)), port_(std::move(port)), source_(*network_, *port_) {}
  ~TcpInlet() override { network_->close(std::move(port_)); }

  bool next(Frame& frame) override { return network_->next(*port_, frame); }
  // A look costs a system call, so a few do for many turns.
  bool spin(std::uint32_t turns) override {
    for (turns = turns / 16 + 1; turns != 0; --turns)
      if (network_->has_frame(*port_)) return true;
    return false;
  }
  void release(const Frame& frame) override { network_->release(*port_, frame); }
  OriginInfo origin(std::uint32_t index) const override { return network_->origin(*port_, index); }
  void drop_origin(std::uint32_t index) override { network_->drop_origin(*port_, index); }
  bool has_frame() override { return network_->has_frame(*port_); }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return network_->find_dead(*port_); }
  std::int64_t take_broken() override { return network_->take_broken(*port_); }
  bool take_given_up(Error& error) override { return network_->take_given_up(*port_, error); }
  std::size_t max_frame() const override { return network_->max_frame(); }
  void use_places(PlaceFinder& finder) override { port_->places = &finder; }

 private:
  std::shared_ptr<TcpNetwork> network_;
  std::unique_ptr<TcpPort> port_;
  TcpSource source_;
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
  std::size_t max_frame(std::size_t header) const override { return header == 0 ? most_ : std::min(most_, kWhole); }
  std::size_t max_begin(std::size_t) const override { return most_; }
  bool peer_listening() const override { return network_->peer_listening(*link_); }
  bool port_closed() const override { return link_->closed.load(std::memory_order_relaxed); }
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

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::shared_ptr<TcpNetwork> network)
      : network_(std::move(network)), card_(hosts::encode(kName, network_->self())), shown_card_(card_) {}

  const std::string& card() const override { return card_; }
  bool reachable(std::string_view card) const override {
    return hosts::decode(kName, control::identity_of(card)).has_value();
  }
  void use_card(std::string_view card) override { shown_card_ = card; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions&) override {
    if (auto ok = check(number); !ok) return fail(ok.error());
    auto port = network_->open(number);
    if (!port) return fail(port.error());
    return std::make_unique<TcpInlet>(network_, std::move(*port));
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    auto peer = hosts::decode(kName, control::identity_of(card));
    if (!peer) return fail(peer.error());
    if (auto ok = check(to); !ok) return fail(ok.error());
    if (hello.size() > kHelloLimit)
      return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
    const auto introduction = hosts::introduction(shown_card_, hello);
    auto link = network_->connect(*peer, to, from, introduction);
    if (!link) return fail(link.error());
    const ProcessId id{peer->pid, peer->host == network_->self().host ? Ip{} : (*link)->where.ip()};
    return std::make_unique<TcpOutlet>(network_, std::move(*link), id, counters);
  }

  std::vector<NamedCount> counts() const override {
    const TcpCounts c = network_->counts();
    return {{"connections made", c.made}, {"accepted", c.accepted},        {"refused", c.refused},
            {"frames sent", c.sent},      {"frames received", c.received}, {"frames dropped", c.dropped},
            {"bytes in place", c.placed}};
  }

 private:
  static Result<void> check(std::uint16_t port) {
    if (port < kPortsPerProcess) return {};
    return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", port, kPortsPerProcess - 1));
  }

  std::shared_ptr<TcpNetwork> network_;
  std::string card_, shown_card_;
};

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto settings = hosts::settings_from(config);
  if (!settings) return fail(settings.error());
  auto network = TcpNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<TcpTransport>(std::move(*network));
}

}  // namespace
}  // namespace tcp

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
    .config_rows = "INTERFACE PORTS FRAME PEERS GIVE_UP",
    .takes_options = false,
    .links = false,
    .control = false,
    .nodes = [](int) { return std::vector<int>(); },
    .unavailable = [] { return std::string(); },
    .make = tcp::make,
};

}  // namespace ulfm
