#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Other hosts: libfabric's connections.
extern const TransportDescriptor ofi_transport;

/// The same for the library's own use, beside what the program has: frames of at least so many bytes, and a port more,
/// of number kPortsPerProcess.
Result<std::unique_ptr<Transport>> make_carrier(const Config& config, std::size_t frame);

}  // namespace ulfm
