// Reliability for any transport: what is lost, damaged, doubled or out of order below arrives once, in order and intact
// above. After RFC 9293 and RFC 2018 in kind (cumulative and selective acknowledgement), RFC 6298 for time-outs, and
// the credits of the long-message protocols that receivers of fixed memory use.
//
// A decorator: it keeps the contract of transports on both sides. The port that sends must be open, for that is where
// its acknowledgements arrive. See docs/architecture.md, "The protocol", for how it works.
#pragma once

#include <array>
#include <condition_variable>
#include <thread>

#include "proto/reliable/port.hpp"
#include "transport/decorator.hpp"

namespace ulfm::reliable {

class ReliableTransport final : public ForwardingTransport {
 public:
  ReliableTransport(std::unique_ptr<Transport> under, const ReliableSettings& settings);
  ~ReliableTransport() override;
  /// Peers are answered from now on also while the program computes. Once, before the first open().
  Result<void> start_keepalive();

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override;
  /// Errc::invalid when port `from` is not open.
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override;
  std::size_t multicast_frame(std::size_t receivers, std::size_t header) const override;
  std::vector<NamedCount> counts() const override;

  const Counters& counters() const noexcept { return common_->counters; }

  // For the inlets.
  void closing(std::uint16_t number);

 private:
  void keepalive();

  std::shared_ptr<Common> common_;
  std::mutex ports_lock_;
  std::array<std::shared_ptr<ReliablePort>, kPortsPerProcess> ports_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread keepalive_thread_;
};

}  // namespace ulfm::reliable
