#include "transport/xswitch/xswitch.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

constinit const TransportDescriptor xswitch_transport =
    emulated::descriptor("xswitch", "emulated network of X-Switches (THNPC-II, TH-GBNet)", 8192,
                         [](const Config&) { return emulated::make("xswitch"); });

}  // namespace ulfm
