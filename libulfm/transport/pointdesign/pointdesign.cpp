#include "transport/pointdesign/pointdesign.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

constinit const TransportDescriptor pointdesign_transport = emulated::descriptor(
    "pointdesign", "emulated generalized hypercube with multicast (NJIT Point Design)", 16384,
    [](const Config&) { return emulated::make("pointdesign"); }, false, true);

}  // namespace ulfm
