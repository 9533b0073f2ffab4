#include "transport/pcie/pcie.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

const TransportDescriptor pcie_transport{
    .name = "pcie",
    .summary = "emulated boards in the slots of a PC, whose host passes messages on",
    .reliable = true,
    .ordered = true,
    .single_copy = false,
    .multicast = false,
    .multi_host = false,
    .max_frame = 16384,
    .latency_us = 1,
    .bandwidth_MBps = 5000,
    .config_rows = "TOPOLOGY",
    .takes_options = true,
    .links = true,
    .unavailable = [] { return std::string(); },
    .make = [](const Config&) { return emulated::make("pcie"); },
};

}  // namespace ulfm
