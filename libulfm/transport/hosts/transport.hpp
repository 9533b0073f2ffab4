// What a transport between hosts is above its network: the same for every network (tcp, ofi).
//
// A Network has ports and connections, and gives:
//
//   kTransport                     name of the transport, in its cards
//   self(), max_frame(), counts()  about this process
//   open, close, next, ...         what an Inlet has, of one port
//   connect                        to a port of another process; what it makes has `where`, the address that answered
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "transport/contract.hpp"
#include "transport/hosts/card.hpp"
#include "transport/hosts/unreached.hpp"

namespace ulfm::hosts {

/// A port of `Network`. `Source` sleeps for it.
template <typename Network, typename Port, typename Source>
class NetworkInlet : public Inlet {
 public:
  NetworkInlet(std::shared_ptr<Network> network, std::unique_ptr<Port> port)
      : network_(std::move(network)), port_(std::move(port)), source_(*network_, *port_) {}
  ~NetworkInlet() override { network_->close(std::move(port_)); }

  bool next(Frame& frame) override { return network_->next(*port_, frame); }
  // A look costs a system call, so a few do for many turns.
  bool spin(std::uint32_t turns) override {
    for (turns = turns / 16 + 1; turns != 0; --turns)
      if (network_->has_arrived(*port_)) return true;
    return false;
  }
  bool look() override { return network_->has_arrived(*port_); }
  void release(const Frame& frame) override { network_->release(*port_, frame); }
  OriginInfo origin(std::uint32_t index) const override { return network_->origin(*port_, index); }
  void drop_origin(std::uint32_t index) override { network_->drop_origin(*port_, index); }
  bool has_frame() override { return network_->has_frame(*port_); }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return network_->find_dead(*port_); }
  std::int64_t take_broken() override { return network_->take_broken(*port_); }
  std::size_t max_frame() const override { return network_->max_frame(); }

 protected:
  std::shared_ptr<Network> network_;
  std::unique_ptr<Port> port_;

 private:
  Source source_;
};

/// Cards, ports and connections of `Network`.
template <typename Network, typename InletOfIt, typename OutletOfIt>
class NetworkTransport final : public Transport {
 public:
  /// Ports are numbered from 0 to `ports` - 1.
  explicit NetworkTransport(std::shared_ptr<Network> network, std::uint16_t ports = kPortsPerProcess)
      : network_(std::move(network)),
        ports_(ports),
        card_(encode(Network::kTransport, network_->self())),
        shown_card_(card_) {}

  const std::string& card() const override { return card_; }
  bool reachable(std::string_view card) const override { return process_of(card).has_value(); }
  void use_card(std::string_view card) override { shown_card_ = card; }

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions&) override try {
    if (auto ok = check(number); !ok) return fail(ok.error());
    auto port = network_->open(number);
    if (!port) return fail(port.error());
    try {
      return std::make_unique<InletOfIt>(network_, std::move(*port));
    } catch (const std::bad_alloc&) {
      network_->close(std::move(*port));  // which has not been moved away
      throw;
    }
  } catch (const std::bad_alloc&) {
    return fail(Errc::no_memory, kNoMemory);
  }

  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override try {
    auto peer = process_of(card);
    if (!peer) return fail(peer.error());
    if (auto ok = check(to); !ok) return fail(ok.error());
    if (hello.size() > kHelloLimit)
      return fail(Errc::too_large, fmt::format("hello of {} bytes; at most {}", hello.size(), kHelloLimit));
    const auto begun = Unreached::Clock::now();
    if (auto why = network_->unreached().error(peer->token, to, begun)) return fail(std::move(*why));
    auto connection = network_->connect(*peer, to, from, introduction(shown_card_, hello));
    if (!connection) {
      network_->unreached().note(peer->token, to, begun, Unreached::Clock::now(), connection.error());
      return fail(connection.error());
    }
    const ProcessId id{peer->pid, peer->host == network_->self().host ? Ip{} : (*connection)->where.ip()};
    try {
      return std::make_unique<OutletOfIt>(network_, *connection, id, counters);
    } catch (const std::bad_alloc&) {
      network_->retire(std::move(*connection));
      throw;
    }
  } catch (const std::bad_alloc&) {
    return fail(Errc::no_memory, kNoMemory);
  }

  std::vector<NamedCount> counts() const override { return network_->counts(); }

 private:
  static constexpr const char* kNoMemory = "out of memory";  // a text that needs none itself
  static Result<ProcessCard> process_of(std::string_view card) {
    return decode(Network::kTransport, control::identity_of(card));
  }
  Result<void> check(std::uint16_t port) const {
    if (port < ports_) return {};
    return fail(Errc::invalid, fmt::format("port {}: there are ports 0 to {}", port, ports_ - 1));
  }

  std::shared_ptr<Network> network_;
  std::uint16_t ports_;
  std::string card_, shown_card_;
};

}  // namespace ulfm::hosts
