#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Other hosts on Ethernet: TCP connections of our own, without a library between (decision 0031).
extern const TransportDescriptor tcp_transport;

/// A transport for the library's own use, beside the program's: frames have at least so many bytes and come whole, and
/// there is one port more, of number kPortsPerProcess. A wait at another port ends for a frame of that one, too.
Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame);

}  // namespace ulfm
