// A control channel beside a transport: a decorator that sets a control connection up before a virtual connection, and
// has nothing to do with what then goes over it.
#pragma once

#include "transport/decorator.hpp"

namespace ulfm {

class ControlTransport final : public ForwardingTransport {
 public:
  /// `control` is the channel that `under` was given by use_control().
  ControlTransport(std::unique_ptr<control::Control> control, std::unique_ptr<Transport> under)
      : ForwardingTransport(std::move(under)), control_(std::move(control)) {}
  /// Says goodbye to everybody, and then takes the transport down: it knows the channel, which must outlive it.
  ~ControlTransport() override {
    control_->close();
    under_.reset();
  }

  const std::string& card() const override { return control_->card(); }
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte> hello, PortCounters& counters) override;
  control::Control* control() override { return control_.get(); }

 private:
  std::unique_ptr<control::Control> control_;
};

}  // namespace ulfm
