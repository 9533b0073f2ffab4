#include "transport/pcie/pcie.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

constinit const TransportDescriptor pcie_transport = emulated::descriptor(
    "pcie", "emulated boards in the slots of a PC, whose host passes messages on", 16384,
    [](const Config&) { return emulated::make("pcie"); },
    true);  // Fang and Lei 2017, section 3: two channels

}  // namespace ulfm
