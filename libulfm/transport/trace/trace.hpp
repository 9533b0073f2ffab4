// Notes every frame that goes by (base/trace.hpp). A decorator around everything else, only there with ULFM_TRACE:
// without a trace the way of a message has no branch for it.
#pragma once

#include "transport/contract.hpp"

namespace ulfm {

class TraceTransport final : public Transport {
 public:
  /// `name` of the transport, of static duration.
  TraceTransport(std::unique_ptr<Transport> under, const char* name) : under_(std::move(under)), name_(name) {}

  const std::string& card() const override { return under_->card(); }
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const PortGeometry& geometry) override;
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  void introduce(std::string_view world, std::uint32_t rank, std::string_view card) override {
    under_->introduce(world, rank, card);
  }
  std::string card_of(std::string_view world, std::uint32_t rank) const override { return under_->card_of(world, rank); }
  control::Control* control() override { return under_->control(); }
  std::vector<NamedCount> counts() const override { return under_->counts(); }
  std::string shared_statistics() override { return under_->shared_statistics(); }

 private:
  std::unique_ptr<Transport> under_;
  const char* name_;
};

}  // namespace ulfm
