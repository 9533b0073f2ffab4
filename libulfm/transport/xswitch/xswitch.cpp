#include "transport/xswitch/xswitch.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

const TransportDescriptor xswitch_transport{
    .name = "xswitch",
    .summary = "emulated network of X-Switches (THNPC-II, TH-GBNet)",
    .reliable = true,
    .ordered = true,
    .single_copy = false,
    .multicast = false,
    .multi_host = false,
    .max_frame = 8192,
    .latency_us = 1,
    .bandwidth_MBps = 5000,
    .config_rows = "TOPOLOGY",
    .takes_options = true,
    .links = true,
    .unavailable = [] { return std::string(); },
    .make = [](const Config&) { return emulated::make("xswitch"); },
};

}  // namespace ulfm
