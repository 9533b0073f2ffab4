#include "transport/dcm/dcm.hpp"

#include "transport/emulated/transport.hpp"

namespace ulfm {

const TransportDescriptor dcm_transport{
    .name = "dcm",
    .summary = "emulated hypercube of Direct-Connect routers (iPSC/2)",
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
    .make = [](const Config&) { return emulated::make("dcm"); },
};

}  // namespace ulfm
