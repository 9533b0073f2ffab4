#include "transport/dcm/dcm.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

constinit const TransportDescriptor dcm_transport =
    emulated::descriptor("dcm", "emulated hypercube of Direct-Connect routers (iPSC/2)", 16384,
                         [](const Config&) { return emulated::make("dcm"); });

}  // namespace ulfm
