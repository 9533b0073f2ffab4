#include "transport/ideal/ideal.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

constinit const TransportDescriptor ideal_transport =
    emulated::descriptor("ideal", "emulated ideal network: LogGP, no contention", 8192,
                         [](const Config&) { return emulated::make("ideal"); });

}  // namespace ulfm
