// Notes every frame that goes by (base/trace.hpp). A decorator around everything else, only there with ULFM_TRACE:
// without a trace the way of a message has no branch for it.
#pragma once

#include "transport/decorator.hpp"

namespace ulfm {

class TraceTransport final : public ForwardingTransport {
 public:
  /// `name` of the transport, of static duration.
  TraceTransport(std::unique_ptr<Transport> under, const char* name)
      : ForwardingTransport(std::move(under)), name_(name) {}

  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options) override;
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override;

 private:
  const char* name_;
};

}  // namespace ulfm
