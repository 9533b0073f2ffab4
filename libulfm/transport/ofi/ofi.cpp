#include "transport/ofi/ofi.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "transport/ofi/network.hpp"

namespace ulfm {

namespace ofi {
namespace {

/// Sleeps on what libfabric waits on. The owner's last look makes it ready for that (OfiNetwork::has_frame).
class OfiSource final : public WakeSource {
 public:
  OfiSource(OfiNetwork& network, OfiPort& port) : network_(network), port_(port) {}

  void arm() noexcept override {}
  void cancel() noexcept override {}
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return network_.sleep(limit); }
  void ring() noexcept override { network_.ring(); }
  int descriptor() const noexcept override { return network_.descriptor(); }

  void watch() noexcept override {
    watched_from_ = port_.arrivals.load(std::memory_order_acquire);
    watching_.store(true, std::memory_order_relaxed);
  }
  // What the owner takes in meanwhile counts too; it rings nobody, so a sleep is short.
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override {
    const auto until = Clock::now() + limit;
    for (;;) {
      network_.look();
      if (!watching_.load(std::memory_order_relaxed)) return true;
      if (port_.arrivals.load(std::memory_order_acquire) != watched_from_) return true;
      const auto left = until - Clock::now();
      if (left.count() <= 0) return false;
      (void)network_.sleep(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(20)));
    }
  }
  void end_watch() noexcept override {
    watching_.store(false, std::memory_order_relaxed);
    network_.ring();
  }

 private:
  OfiNetwork& network_;
  OfiPort& port_;
  std::uint64_t watched_from_ = 0;
  std::atomic<bool> watching_{false};
};

class OfiInlet final : public Inlet {
 public:
  OfiInlet(std::shared_ptr<OfiNetwork> network, std::unique_ptr<OfiPort> port)
      : network_(std::move(network)), port_(std::move(port)), source_(*network_, *port_) {}
  ~OfiInlet() override { network_->close(std::move(port_)); }

  bool next(Frame& frame) override { return network_->next(*port_, frame); }
  // A look costs a system call, so a few do for many turns.
  bool spin(std::uint32_t turns) override {
    for (turns = turns / 16 + 1; turns != 0; --turns)
      if (network_->has_arrived(*port_)) return true;
    return false;
  }
  void release(const Frame& frame) override { network_->release(*port_, frame); }
  OriginInfo origin(std::uint32_t index) const override { return network_->origin(*port_, index); }
  void drop_origin(std::uint32_t index) override { network_->drop_origin(*port_, index); }
  bool has_frame() override { return network_->has_frame(*port_); }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return network_->find_dead(*port_); }
  std::int64_t take_broken() override { return network_->take_broken(*port_); }
  std::size_t max_frame() const override { return network_->max_frame(); }

 private:
  std::shared_ptr<OfiNetwork> network_;
  std::unique_ptr<OfiPort> port_;
  OfiSource source_;
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

class OfiTransport final : public Transport {
 public:
  OfiTransport(std::shared_ptr<OfiNetwork> network, std::uint16_t ports)
      : network_(std::move(network)),
        ports_(ports),
        card_(hosts::encode(kName, network_->self())),
        shown_card_(card_) {}

  const std::string& card() const override { return card_; }
  bool reachable(std::string_view card) const override {
    return hosts::decode(kName, control::identity_of(card)).has_value();
  }
  void use_card(std::string_view card) override { shown_card_ = card; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions&) override {
    if (auto ok = check(number); !ok) return fail(ok.error());
    auto port = network_->open(number);
    if (!port) return fail(port.error());
    return std::make_unique<OfiInlet>(network_, std::move(*port));
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override {
    auto peer = hosts::decode(kName, control::identity_of(card));
    if (!peer) return fail(peer.error());
    if (auto ok = check(to); !ok) return fail(ok.error());
    if (hello.size() > kHelloLimit)
      return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
    const auto introduction = hosts::introduction(shown_card_, hello);
    auto connection = network_->connect(*peer, to, from, introduction);
    if (!connection) return fail(connection.error());
    const ProcessId id{peer->pid, peer->host == network_->self().host ? Ip{} : (*connection)->where.ip()};
    return std::make_unique<OfiOutlet>(network_, std::move(*connection), id, counters);
  }

  std::vector<NamedCount> counts() const override {
    const OfiCounts c = network_->counts();
    return {{"connections made", c.made}, {"accepted", c.accepted},        {"refused", c.refused},
            {"frames sent", c.sent},      {"frames received", c.received}, {"frames dropped", c.dropped}};
  }

 private:
  Result<void> check(std::uint16_t port) const {
    if (port < ports_) return {};
    return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", port, ports_ - 1));
  }

  std::shared_ptr<OfiNetwork> network_;
  std::uint16_t ports_;
  std::string card_, shown_card_;
};

Result<std::unique_ptr<Transport>> make(const Config& config) {
  auto settings = hosts::settings_from(config);
  if (!settings) return fail(settings.error());
  auto network = OfiNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<OfiTransport>(std::move(*network), kPortsPerProcess);
}

std::string why_unavailable() {
  auto library = fabric_library();
  return library ? "" : library.error().what;
}

}  // namespace
}  // namespace ofi

Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame) {
  Config own = config;
  if (auto ok = own.set("TRANSPORT", ofi_transport.name, Origin::command_line, ""); !ok) return fail(ok.error());
  auto settings = hosts::settings_from(own);
  if (!settings) return fail(settings.error());
  settings->max_frame = std::max(settings->max_frame, frame);
  auto network = ofi::OfiNetwork::create(*settings);
  if (!network) return fail(network.error());
  return std::make_unique<ofi::OfiTransport>(std::move(*network), ofi::kNetworkPorts);
}

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
