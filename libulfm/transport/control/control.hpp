// A control channel beside a transport: a decorator that sets a control connection up before a virtual connection, and
// has nothing to do with what then goes over it.
#pragma once

#include "transport/contract.hpp"

namespace ulfm {

class ControlTransport final : public Transport {
 public:
  /// `control` is the channel that `inner` was given by use_control().
  ControlTransport(std::unique_ptr<control::Control> control, std::unique_ptr<Transport> inner)
      : control_(std::move(control)), inner_(std::move(inner)) {}
  /// Says goodbye to everybody, and then takes the transport down.
  ~ControlTransport() override { control_->close(); }

  const std::string& card() const override { return control_->card(); }
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const PortGeometry& geometry) override {
    return inner_->open(number, geometry);
  }
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  void introduce(std::string_view world, std::uint32_t rank, std::string_view card) override {
    inner_->introduce(world, rank, card);
  }
  std::string card_of(std::string_view world, std::uint32_t rank) const override { return inner_->card_of(world, rank); }
  control::Control* control() override { return control_.get(); }
  std::vector<NamedCount> counts() const override { return inner_->counts(); }
  std::string shared_statistics() override { return inner_->shared_statistics(); }

 private:
  std::unique_ptr<control::Control> control_;
  std::unique_ptr<Transport> inner_;
};

}  // namespace ulfm
