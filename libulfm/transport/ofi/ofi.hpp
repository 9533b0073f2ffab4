#pragma once

#include "transport/contract.hpp"

namespace ulfm {

/// Other hosts: libfabric's connections.
extern const TransportDescriptor ofi_transport;

}  // namespace ulfm
