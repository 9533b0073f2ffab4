#include "transport/control/control.hpp"

#include "job/control/wire.hpp"

namespace ulfm {

static_assert(control::kMostCard == kMostCard, "an identity names any process");

Result<std::unique_ptr<Outlet>> ControlTransport::connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                                          std::span<const std::byte> hello, PortCounters& counters) {
  if (auto ok = control_->set_up(card, to, from); !ok)
    return fail(std::move(ok.error()).within("setting up the control connection"));
  return under_->connect(card, to, from, hello, counters);
}

}  // namespace ulfm
