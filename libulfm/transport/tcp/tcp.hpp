#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Other hosts on Ethernet: TCP connections of our own, without a library between (decision 0031).
extern const TransportDescriptor tcp_transport;

}  // namespace ulfm
