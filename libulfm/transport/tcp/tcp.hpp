#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Other hosts on Ethernet: TCP connections of our own, without a library between (decision 0031).
extern const TransportDescriptor tcp_transport;

/// The same for the library's own use, beside what the program has: frames of at least so many bytes, which come whole,
/// and a port more, of number kPortsPerProcess. Who waits at another port wakes for what comes to that one, too.
Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame);

}  // namespace ulfm
